"""What recorded sessions can tell: when everything happened, what hooks cost, what other hooks would have said."""
