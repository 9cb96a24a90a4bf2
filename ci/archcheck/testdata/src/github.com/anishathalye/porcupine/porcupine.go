package porcupine
