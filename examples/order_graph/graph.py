"""An order desk: one agent reads an order, two look up price and stock, and a fourth answers."""

from strands import Agent, tool
from strands.models import BedrockModel
from strands.multiagent import GraphBuilder

import tracefork_core as tracefork

ORDER = "Seven lamps, please."
PRICES = {"lamp": 10, "candle": 2}
STOCK = {"lamp": 12, "candle": 3}


@tool
@tracefork.tool(effect="read")
def find_price(thing: str) -> str:
    """Find the price of one piece."""
    return f"{PRICES[thing]} euros"


@tool
@tracefork.tool(effect="read")
def count_stock(thing: str) -> str:
    """Count the pieces in stock."""
    return f"{STOCK[thing]} in stock"


def agent(prompt, *tools):
    model = BedrockModel(model_id="us.amazon.nova-lite-v1:0")
    return Agent(model=model, system_prompt=prompt, tools=list(tools), callback_handler=None)


def desk():
    builder = GraphBuilder()
    builder.add_node(agent("You are Intake. Say what is ordered."), "intake")
    builder.add_node(agent("You are Price. Say what it costs.", find_price), "price")
    builder.add_node(agent("You are Stock. Say what there is.", count_stock), "stock")
    builder.add_node(agent("You are Answer. Write to the customer."), "answer")
    for name in ("price", "stock"):
        builder.add_edge("intake", name)
        builder.add_edge(name, "answer")
    return builder.set_graph_id("desk").set_max_node_executions(9).build()


def run():
    answer = str(desk()(ORDER).results["answer"].result).strip()
    print(answer)
    return answer


def is_right(answer):
    return "7 lamps for 70 euros" in answer


if __name__ == "__main__":
    run()
