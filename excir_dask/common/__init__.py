"""What every layer may use: text files, words for messages."""
