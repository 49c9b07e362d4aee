// Asks a model with the HTTP client of the Java library, as a program without an SDK does.
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;

class Agent {
  public static void main(String[] words) throws Exception {
    String body = """
        {"model": "gpt-5-mini", "messages": [{"role": "user", "content": "@say %s"}]}
        """.formatted(words[0]);
    HttpRequest asked = HttpRequest.newBuilder()
        .uri(URI.create(System.getenv("OPENAI_BASE_URL") + "/chat/completions"))
        .header("content-type", "application/json")
        .POST(BodyPublishers.ofString(body))
        .build();
    System.out.println(HttpClient.newHttpClient().send(asked, BodyHandlers.ofString()).body());
  }
}
