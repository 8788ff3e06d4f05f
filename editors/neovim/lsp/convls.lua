-- For vim.lsp.enable("convls") and vim.lsp.config("convls", {...}). :Convls starts the
-- same client by itself, so that neither is needed.
return require("convls.server").config()
