<?php
// Programs whose callers and callees are known: `script.php WHAT SECONDS`, in PHP 8.1 and later.
// Prints the seconds of CPU time that it took, and of what it measured a line `NAME SECONDS` each.
// With `chunks` in place of the seconds it goes on for ever, and prints what each chunk of equal work took.

function spin(int $units): int
{
    $total = 0;
    for ($i = 0; $i < 40 * $units; $i++) {
        $total = $total + $i % 7;
    }
    return $total;
}

// Functions with 50, 30 and 20 % of the time, in turn, from two callers each.
function half() { for ($i = 0; $i < 5; $i++) { spin(1); } }
function third() { for ($i = 0; $i < 3; $i++) { spin(1); } }
function fifth() { for ($i = 0; $i < 2; $i++) { spin(1); } }
function one() { half(); third(); fifth(); }
function other() { half(); third(); fifth(); }
function shares() { one(); other(); }

// Nearly all the time in the loop, however long a call takes.
function lines() { spin(100); }

// Functions in C call these.
function by_key(int $a, int $b): int
{
    spin(1);
    return $a <=> $b;
}

function order()
{
    $list = [];
    for ($i = 1; $i <= 12; $i++) {
        $list[] = $i * 7 % 13;
    }
    usort($list, 'by_key');
}

function replace(array $found): string
{
    spin(1);
    return '-';
}

function texts()
{
    preg_replace_callback('/\w+/', 'replace', 'some words to be replaced');
}

function closures()
{
    $each = function (int $x): int {
        spin(1);
        return $x;
    };
    array_map($each, [1, 2, 3]);
    array_filter([1, 2], fn (int $x) => spin(1) > $x);
}

class Number
{
    public function __get(string $name) { spin(2); return 1; }
    public function __call(string $name, array $arguments) { spin(2); return 2; }
    public static function __callStatic(string $name, array $arguments) { spin(2); return 3; }
    public function __toString(): string { spin(2); return 'text'; }
}

class Ended extends Number
{
    public static function made(): static { spin(1); return new static(); }
    public function __destruct() { spin(2); }
}

function magic()
{
    $number = new Number();
    $number->field + $number->method(1) + Number::other(2) + strlen("$number");
}

function uses_local(): int
{
    $local = Ended::made();
    return $local->field;
}

function objects()
{
    uses_local();
    $object = new class {
        public function method() { spin(1); }
    };
    $object->method();
}

function throws() { spin(2); throw new Exception('thrown'); }
function passes() { try { throws(); } finally { spin(1); } }
function guarded() { try { passes(); } catch (Exception $e) { spin(1); } }
function files() { include __DIR__ . '/included.php'; }
function callbacks() { order(); texts(); closures(); magic(); objects(); guarded(); files(); }

function leaf() { for ($i = 0; $i < 3; $i++) { spin(1); yield $i; } }
function between() { spin(1); yield from leaf(); }
function delegates() { yield from between(); spin(1); yield 9; }

function generators()
{
    foreach (delegates() as $value) {
        spin(1);
    }
}

// A new one takes memory, which the kernel clears: that is not to be all of it.
function suspends() { for ($i = 0; $i < 60; $i++) { spin(10); Fiber::suspend(1); } }
function inside() { suspends(); array_map('replaces', [1]); }
function replaces(int $x) { suspends(); return $x; }

function fibers()
{
    $fiber = new Fiber('inside');
    $fiber->start();
    while (!$fiber->isTerminated()) {
        spin(1);
        $fiber->resume();
    }
}

function recurse(int $depth): int { return $depth == 0 ? spin(40) : recurse($depth - 1) + 1; }
function deep() { recurse(20); recurse(500); }

function churn()
{
    static $count = 0;
    $count = ($count + 1) % 50;
    $text = 'return function () { ' . str_repeat("\n", $count) . 'made_inside_' . $count % 5 . '(); };';
    $made = eval($text);
    $made();
}

for ($i = 0; $i < 5; $i++) {
    eval("function made_inside_$i() { spin(2); }");
}

function until_end(string $what, float $end)
{
    while (cpu_seconds() < $end) {
        for ($i = 0; $i < 20; $i++) {
            $what();
        }
    }
}

function cpu_seconds(): float
{
    $usage = getrusage();
    $of = fn (string $kind) => $usage["ru_$kind.tv_sec"] + $usage["ru_$kind.tv_usec"] / 1e6;
    return $of('utime') + $of('stime');
}

// Equal chunks of work, as much as is done in 50 ms: the nanoseconds of CPU time of each.
function chunks(string $what)
{
    $end = cpu_seconds() + 0.05;
    for ($count = 0; cpu_seconds() < $end; $count++) {
        $what();
    }
    while (true) {
        $start = cpu_seconds();
        for ($i = 0; $i < $count; $i++) {
            $what();
        }
        printf("%.0f\n", (cpu_seconds() - $start) * 1e9);
    }
}

function main(array $argv)
{
    if ($argv[2] == 'chunks') {
        chunks($argv[1]);
    }
    until_end($argv[1], (float) $argv[2]);
    printf("%.3f\n", cpu_seconds());
}

main($argv);
