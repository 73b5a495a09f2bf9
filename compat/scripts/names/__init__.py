"""Tables of the names that releases since 2016 removed or changed, with their replacements."""
