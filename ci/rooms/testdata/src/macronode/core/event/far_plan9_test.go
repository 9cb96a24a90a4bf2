package event
