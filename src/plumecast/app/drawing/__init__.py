"""What a map is made of: colour scales, layers, perimeters, borders and hillshade."""
