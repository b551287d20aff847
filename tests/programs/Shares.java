// Shares SECONDS: main -> turn -> Heavy.run and Light.run, in which mix is called, with 70 and 30 % of the
// time. Says `ready` when all of that is compiled.
public final class Shares {
    interface Job {
        long run(long rounds);
    }

    private static long sink;

    static final class Heavy implements Job {
        public long run(long rounds) {
            long sum = 1;
            for (long i = 0; i < rounds; i++) {
                sum = mix(sum, i);
            }
            return sum;
        }
    }

    static final class Light implements Job {
        public long run(long rounds) {
            long sum = 2;
            for (long i = 0; i < rounds; i++) {
                sum = mix(sum, i);
            }
            return sum;
        }
    }

    private static long mix(long sum, long i) {
        return sum * 31 + (i ^ (sum >>> 7));
    }

    private static void turn(Job heavy, Job light) {
        sink += heavy.run(7_000) + light.run(3_000);
    }

    public static void main(String[] arguments) {
        Job heavy = new Heavy();
        Job light = new Light();
        long end = System.nanoTime() + 500_000_000;
        while (System.nanoTime() < end) {
            turn(heavy, light);
        }
        System.out.println("ready");
        end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000;
        while (System.nanoTime() < end) {
            turn(heavy, light);
        }
    }
}
