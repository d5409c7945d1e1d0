"""The article behind this product, claim by claim: ``python -m benchmarks.article`` writes ``docs/article.md``."""
