"""What every layer may use: text files, atomic writes, words for messages."""
