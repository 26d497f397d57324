"""Pictures made on the server: SVG as text, coloured by the page's style sheet, readable without a script."""
