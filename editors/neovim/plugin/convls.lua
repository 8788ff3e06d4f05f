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
  -- Of a selection, attach alone takes the lines.
  local command = name == "attach" and ":Convls attach<CR>" or ":<C-u>Convls " .. name .. "<CR>"
  vim.keymap.set({ "n", "x" }, "<Plug>(convls-" .. name .. ")", command, { silent = true })
end

-- Virtual documents and views, by their names (:help convls-documents).
local group = vim.api.nvim_create_augroup("convls", {})
vim.api.nvim_create_autocmd("SessionLoadPost", {
  group = group,
  callback = function()
    -- A session file names them, and reads none.
    for _, win in ipairs(vim.api.nvim_list_wins()) do
      local buf = vim.api.nvim_win_get_buf(win)
      if vim.bo[buf].buftype == "" and vim.startswith(vim.api.nvim_buf_get_name(buf), "convls:/") then
        vim.api.nvim_win_call(win, function()
          require("convls.document").read(buf)
        end)
      end
    end
  end,
})
vim.api.nvim_create_autocmd("BufReadCmd", {
  group = group,
  pattern = "convls:/*",
  callback = function(event)
    require("convls.document").read(event.buf)
  end,
})
