-- A chat is Markdown. The window's own settings are made where a chat is shown.
vim.bo.commentstring = ""
if not pcall(vim.treesitter.start, 0, "markdown") then
  vim.bo.syntax = "markdown"
end
