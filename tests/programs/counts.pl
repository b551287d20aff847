# The same as counts.py, without `touch`.
use strict;
use warnings;

my $bytes;

sub small { my ($file) = @_; sysread($file, $bytes, 100) for 1 .. 10; }
sub large { my ($file) = @_; sysread($file, $bytes, 128 << 10); }
sub calls_small { small(@_); 1 }
sub calls_large { large(@_); 1 }

select(undef, undef, undef, 0.4);
open(my $zeros, '<', '/dev/zero') or die;
for (1 .. $ARGV[0]) {
    calls_small($zeros);
    calls_large($zeros);
}
