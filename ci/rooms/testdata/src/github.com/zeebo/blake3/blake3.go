package blake3
