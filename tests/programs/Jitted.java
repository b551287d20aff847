// Jitted SECONDS: main -> work -> alpha, beta, omega with 50, 30 and 20 % of the time, once they are
// compiled. Says `ready` when they are.
public final class Jitted {
    private static long sink;

    private static long alpha(long rounds) {
        long sum = 0;
        for (long i = 0; i < rounds; i++) {
            sum = sum * 31 + (i ^ (sum >>> 7));
        }
        return sum;
    }

    private static long beta(long rounds) {
        long sum = 1;
        for (long i = 0; i < rounds; i++) {
            sum = sum * 31 + (i ^ (sum >>> 7));
        }
        return sum;
    }

    private static long omega(long rounds) {
        long sum = 2;
        for (long i = 0; i < rounds; i++) {
            sum = sum * 31 + (i ^ (sum >>> 7));
        }
        return sum;
    }

    private static void work() {
        sink += alpha(50_000) + beta(30_000) + omega(20_000);
    }

    public static void main(String[] arguments) {
        for (int i = 0; i < 2_000; i++) {
            work();
        }
        System.out.println("ready");
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000;
        while (System.nanoTime() < end) {
            work();
        }
    }
}
