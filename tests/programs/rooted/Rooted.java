// Rooted SECONDS: main -> outer -> inner, which burns some milliseconds and sleeps for two in turn.
public final class Rooted {
    private static long sink;

    private static void inner(long end) throws InterruptedException {
        long x = 1;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 4_000_000; i++) {
                x = x * 31 + (i ^ (x >>> 7));
            }
            Thread.sleep(2);
        }
        sink = x;
    }

    private static void outer(long end) throws InterruptedException {
        inner(end);
        sink++;
    }

    public static void main(String[] arguments) throws InterruptedException {
        System.out.println("ready");
        outer(System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000);
    }
}
