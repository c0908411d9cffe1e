"""How a fire spreads: Rothermel's rates, and fronts from them."""
