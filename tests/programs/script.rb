# Programs whose callers and callees are known: `script.rb WHAT SECONDS`.
# Prints the seconds of CPU time that it took. With `chunks` in place of the seconds it goes on for ever, and prints
# what each chunk of equal work took.

def spin(units)
  total = 0
  i = 0
  while i < 20 * units
    total += i % 7
    i += 1
  end
  total
end

# Methods with 50, 30 and 20 % of the time, in turn, from two callers each.
def half
  spin(50)
end

def third
  spin(30)
end

def fifth
  spin(20)
end

def one
  half
  third
  fifth
end

def other
  half
  third
  fifth
end

def shares
  one
  other
end

# Methods in C call these.
class Number
  include Comparable
  attr_reader :value

  def initialize(value)
    @value = value
    spin(2)
  end

  def <=>(other)
    spin(2)
    value - other.value
  end

  def to_s
    spin(2)
    "text"
  end

  def self.of(value)
    spin(2)
    new(value)
  end

  define_method(:defined) do
    spin(2)
    [1].each { spin(2) }
  end

  def method_missing(name)
    spin(2)
    name
  end

  def respond_to_missing?(*)
    false
  end
end

module Helper
  def helps
    spin(2)
  end
end

class Special < Number
  include Helper

  def <=>(other)
    super
  end
end

def order
  [3, 1, 2].sort_by { |item| spin(2) + item }
  [3, 1, 2].map { |item| Number.of(item) }.sort
end

def hashes
  { a: 1, b: 2 }.each { |_, value| spin(value) }
  3.times { spin(2) }
  "some words".gsub(/\w+/) { |word| spin(2) && word }
end

def objects
  number = Special.new(1)
  number <=> Special.new(2)
  number.defined
  number.helps
  number.missing
  "#{number}"
end

def fails
  spin(2)
  raise ArgumentError, "thrown"
end

def guarded
  begin
    fails
  rescue ArgumentError
    spin(2)
  ensure
    spin(2)
  end
  catch(:done) { throw :done if spin(2) }
end

def texts
  eval("spin(2)")
  instance_eval { spin(2) }
  made = lambda { |n| spin(n) }
  made.call(2)
  method(:called).call(2) { |n| spin(n) }
end

def called(units)
  yield units
end

def callbacks
  order
  hashes
  objects
  guarded
  texts
end

# Fibers: a generator, and one in another.
def produce
  3.times do
    spin(8)
    Fiber.yield 1
  end
  nil
end

def inner
  fiber = Fiber.new { produce }
  while fiber.resume
    spin(4)
    Fiber.yield 1
  end
  nil
end

def fibers
  fiber = Fiber.new { inner }
  spin(4) while fiber.resume
  all = Enumerator.new { |to| 3.times { |i| spin(4); to << i } }
  while (begin; all.next; rescue StopIteration; nil; end)
    spin(4)
  end
end

# A thread for each, with the lock that lets one of them run.
def threads
  works = [:half, :third].map { |name| Thread.new { 20.times { send(name) } } }
  works.each(&:join)
end

def recurse(n)
  n == 0 ? spin(400) : recurse(n - 1)
end

def recurse_in_blocks(n)
  n == 0 ? spin(400) : [n].each { |m| recurse_in_blocks(m - 1) }
end

def deep
  recurse(500)
  recurse_in_blocks(20)
end

# Code that is made and dropped.
def churn
  20.times do |i|
    made = Class.new { class_eval("def made_inside(n) spin(n) end") }
    made.new.made_inside(2 + i % 2)
  end
  GC.start if rand(50) == 0
end

def until_end(what, seconds)
  start = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  loop do
    5.times { send(what) }
    taken = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - start
    if taken >= seconds
      puts "all #{taken}"
      break
    end
  end
end

def nanoseconds
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
end

# Equal chunks of work, as much as is done in 50 ms: the nanoseconds of CPU time of each.
def chunks(what)
  last = nanoseconds + 50_000_000
  count = 0
  while nanoseconds < last
    send(what)
    count += 1
  end
  while true
    start = nanoseconds
    done = 0
    while done < count
      send(what)
      done += 1
    end
    puts nanoseconds - start
    $stdout.flush
  end
end

if ARGV[1] == "chunks"
  chunks(ARGV[0].to_sym)
else
  until_end(ARGV[0].to_sym, ARGV[1].to_f)
end
