import openai

client = openai.OpenAI()


def ask(question):
    messages = [{"role": "user", "content": question}]
    answer = client.chat.completions.create(model="gpt-5-mini", messages=messages)
    return answer.choices[0].message.content


def support():
    ticket = "My turntable came with a broken arm. I bought it 20 days ago."
    kind = ask(f"What is this ticket about, in one word? {ticket}")
    rule = ask(f"Which rule of the shop holds for {kind}?")
    ruling = ask(f"Refund or refuse? {rule} {ticket}")
    return ask(f"Write this to the customer: {ruling}")


if __name__ == "__main__":
    print(support())
