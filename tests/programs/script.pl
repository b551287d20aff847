# Programs whose callers and callees are known: `script.pl WHAT SECONDS`.
use strict;
use warnings;
no warnings qw(recursion);

# Time on CPUs, that of children too. No module is needed, nor one that is compiled.
sub now {
    my $sum = 0;
    $sum += $_ for times;
    return $sum;
}

sub spin {
    my ($units) = @_;
    my $total = 0;
    for my $i (1 .. 20 * $units) {
        $total += $i;
    }
    return $total;
}

# Subs with 50, 30 and 20 % of the time, in turn, from two callers each.
sub half {
    spin(1) for 1 .. 5;
}

sub third {
    spin(1) for 1 .. 3;
}

sub fifth {
    spin(1) for 1 .. 2;
}

sub one {
    half();
    third();
    fifth();
}

sub other {
    half();
    third();
    fifth();
}

sub shares {
    one();
    other();
}

# Perl calls these by itself.
package Tied {
    sub TIESCALAR { return bless {}, shift }
    sub FETCH { main::spin(2); return 7 }
    sub STORE { main::spin(2) }
}

package Number {
    use overload
        '+' => \&plus,
        '<=>' => sub { main::spin(1); return $_[0]{value} <=> $_[1]{value} },
        '""' => 'text';
    sub new { my ($class, $value) = @_; return bless { value => $value }, $class }
    sub plus { main::spin(2); return Number->new(1) }
    sub text { main::spin(2); return 'number' }
    sub DESTROY { main::spin(1) }
}

package main;

sub by_key {
    spin(1);
    return $a <=> $b;
}

sub order {
    my @sorted = sort by_key 3, 1, 2;
    @sorted = sort { $b <=> $a } 1 .. 20;
    # A call that nothing follows.
    @sorted = sort { by_key() } 2, 1;
}

sub tied_values {
    tie my $value, 'Tied';
    my $read = $value;
    $value = $read;
}

sub numbers {
    my $number = Number->new(2);
    my $sum = $number + 1;
    my $text = "$number";
    my $sorted = [sort { $a <=> $b } Number->new(2), Number->new(1)];
}

sub caught {
    eval { spin(3); die "caught\n" };
    spin(1);
}

sub nested_eval {
    eval { caught() };
}

# A callback that catches takes a loop of its own.
sub catching {
    eval { spin(2) };
    return $a <=> $b;
}

sub order_and_catch {
    my @sorted = sort catching 2, 1;
}

sub from_regex {
    my $found = 'aaa' =~ /a(?{ spin(1) })/;
    my $text = 'xyz';
    $text =~ s/(.)/spin(2) && 'y'/ge;
}

sub closures {
    my ($units) = @_;
    my $made = sub { spin($units) };
    $made->();
    $_->() for map { my $n = $_; sub { spin($n) } } 1 .. 2;
}

sub callbacks {
    order();
    tied_values();
    numbers();
    nested_eval();
    order_and_catch();
    from_regex();
    closures(2);
}

sub recurse {
    my ($depth) = @_;
    return $depth ? recurse($depth - 1) : spin(50);
}

sub deep {
    recurse(500);
}

# Subs that live for one call each.
my $count = 0;

sub churn {
    my $number = ++$count % 50;
    my $calls = eval qq{
        package Made$number;
        sub { my \$made = sub { main::spin(3); return 1 }; \$made->() }
    };
    $calls->();
    eval 'spin(2)';
}

sub until_end {
    my ($end, $what) = @_;
    while (now() < $end) {
        $what->();
    }
}

sub forks {
    my ($end) = @_;
    while (now() < $end) {
        my $child = fork;
        if (!$child) {
            until_end(now() + 0.05, \&shares);
            exec '/bin/true';
        }
        waitpid $child, 0;
    }
}

my %what = (
    shares => \&shares, callbacks => \&callbacks, deep => \&deep, churn => \&churn,
);

sub run {
    my ($what, $seconds) = @_;
    my $end = now() + $seconds;
    return $what eq 'forks' ? forks($end) : until_end($end, $what{$what});
}

run(@ARGV);
