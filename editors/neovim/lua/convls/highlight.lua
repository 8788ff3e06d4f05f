--- Highlight groups, each a link that a colour scheme or a person can change.
local M = {}

--- Name, default link, what it is for: also the help. In the colour scheme that Neovim
--- comes with, Statement, Type, Constant and Number have no colour, and NonText can hardly
--- be read.
---@type string[][]
M.groups = {
  { "ConvlsUser", "Title", "the heading of a person's message" },
  { "ConvlsAssistant", "Function", "the heading of a reply" },
  { "ConvlsSystem", "PreProc", "the heading of the system prompt, and of what is neither message nor reply" },
  { "ConvlsTool", "Special", "a tool call" },
  { "ConvlsReasoning", "Comment", "what a model thought" },
  { "ConvlsSummary", "String", "the heading of a summary" },
  { "ConvlsMeta", "Comment", "model, tokens and time beside a heading" },
  { "ConvlsSibling", "Identifier", "2/3 beside a heading that has siblings" },
  { "ConvlsRunning", "WarningMsg", "a reply that is being written, and the queue" },
  { "ConvlsError", "ErrorMsg", "a reply that failed" },
  { "ConvlsNotice", "DiagnosticHint", "a reply that was cancelled or interrupted" },
  { "ConvlsPrompt", "Title", "the line above the prompt" },
  { "ConvlsAttachment", "Identifier", "what is attached to the message" },
  { "ConvlsBudgetLow", "DiagnosticOk", "the budget in the winbar, below 70 %" },
  { "ConvlsBudgetHigh", "DiagnosticWarn", "the budget in the winbar, from 70 %" },
  { "ConvlsLane1", "Identifier", "lanes 1, 7, 13 and so on of the graph" },
  { "ConvlsLane2", "Function", "lanes 2, 8 and so on" },
  { "ConvlsLane3", "String", "lanes 3, 9 and so on" },
  { "ConvlsLane4", "WarningMsg", "lanes 4, 10 and so on" },
  { "ConvlsLane5", "Statement", "lanes 5, 11 and so on" },
  { "ConvlsLane6", "Constant", "lanes 6, 12 and so on" },
  { "ConvlsHead", "IncSearch", "the mark at HEAD in the graph" },
  { "ConvlsBranch", "Title", "the name of a branch in the graph" },
  { "ConvlsGhost", "Comment", "what the model does not read: ghosts, other branches" },
  { "ConvlsRead", "Visual", "in the graph what the reply that was asked about has read" },
  { "ConvlsCapsule", "String", "a summary in the graph, and what it stands for" },
}

local defined = false

--- Defines the groups, once.
function M.define()
  if defined then
    return
  end
  defined = true
  for _, group in ipairs(M.groups) do
    vim.api.nvim_set_hl(0, group[1], { link = group[2], default = true })
  end
  -- A colour scheme that is chosen later clears them.
  vim.api.nvim_create_autocmd("ColorScheme", {
    group = vim.api.nvim_create_augroup("convls.highlight", {}),
    callback = function()
      defined = false
      M.define()
    end,
  })
end

return M
