# rooted.pl SECONDS: start -> outer -> inner, which burns some milliseconds and sleeps for two in turn.
use strict;
use warnings;

sub inner {
    my ($end) = @_;
    my $x = 1;
    while (time < $end) {
        for my $i (1 .. 60000) {
            $x = ($x * 31 + $i) % 65521;
        }
        select undef, undef, undef, 0.002;
    }
    return $x;
}

sub outer {
    my ($end) = @_;
    return inner($end) + 1;
}

sub start {
    my ($seconds) = @_;
    $| = 1;
    print "ready\n";
    return outer(time + $seconds) + 1;
}

start($ARGV[0]);
