-- Defines :Convls and the <Plug> maps, and loads nothing else: everything below
-- require() runs at first use.
if vim.g.loaded_convls then
  return
end
vim.g.loaded_convls = 1

if vim.fn.has("nvim-0.10") == 0 then
  vim.api.nvim_echo({ { "convls needs Neovim 0.10 or later", "ErrorMsg" } }, true, {})
  return
end

vim.api.nvim_create_user_command("Convls", function(opts)
  require("convls.command").run(opts)
end, {
  nargs = "*",
  range = true,
  bang = true,
  desc = "Chat with language models, branch and look inside",
  complete = function(...)
    return require("convls.command").complete(...)
  end,
})

-- One map for each action; a test compares this list with the table of actions.
for _, name in ipairs({
  "chat",
  "new",
  "sessions",
  "model",
  "send",
  "stop",
  "retry",
  "edit",
  "rewind",
  "prev",
  "next",
  "attach",
  "detach",
  "graph",
  "branches",
  "checkout",
  "fork",
  "rename",
  "delete",
  "compare",
  "expand",
  "hover",
  "reads",
  "refresh",
  "compact",
  "context",
  "jump",
  "transcript",
  "node",
  "restart",
  "shutdown",
  "health",
}) do
  vim.keymap.set({ "n", "x" }, "<Plug>(convls-" .. name .. ")", ":Convls " .. name .. "<CR>", { silent = true })
end

-- Virtual documents and views, by their names (:help convls-documents).
vim.api.nvim_create_autocmd("BufReadCmd", {
  group = vim.api.nvim_create_augroup("convls", {}),
  pattern = "convls:/*",
  callback = function(event)
    require("convls.document").read(event.buf)
  end,
})
