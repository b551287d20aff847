import java.util.*;
import java.util.stream.*;

/** Counts words of a made-up text in three ways, for some seconds: what a flame graph shows of it. */
public class Words {
    static String text(int words) {
        Random random = new Random(42);
        StringBuilder text = new StringBuilder();
        for (int n = 0; n < words; n++) {
            text.append("word").append((int) Math.abs(random.nextGaussian() * 500)).append(n % 17 == 0 ? ".\n" : " ");
        }
        return text.toString();
    }

    static Map<String, Integer> countInTree(String text) {
        Map<String, Integer> counts = new TreeMap<>();
        for (String word : text.split("[ .\n]+")) counts.merge(word, 1, Integer::sum);
        return counts;
    }

    static Map<String, Long> countInStream(String text) {
        return Arrays.stream(text.split("\\s")).collect(Collectors.groupingBy(String::trim, Collectors.counting()));
    }

    static List<String> sorted(String text) {
        List<String> lines = new ArrayList<>(text.lines().toList());
        lines.sort(Comparator.comparing((String line) -> line.length()).thenComparing(Comparator.reverseOrder()));
        return lines;
    }

    public static void main(String[] arguments) {
        String text = text(200_000);
        long end = System.nanoTime() + 4_000_000_000L;
        long sum = 0;
        while (System.nanoTime() < end) {
            sum += countInTree(text).size() + countInStream(text).size() + sorted(text).size();
        }
        System.out.println(sum);
    }
}
