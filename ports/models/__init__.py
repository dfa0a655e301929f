"""Language models: chat-completions servers, the embedded model, the scripted one."""
