import sys

print("text of", sys.argv[1:])
