--- Actions on the connection.
---@param actions { add: fun(action: convls.Action) }
return function(actions)
  actions.add({
    name = "restart",
    desc = "Start the server again, or anew",
    run = function()
      require("convls.server").restart()
    end,
  })
  actions.add({
    name = "shutdown",
    desc = "Stop the server; the next command starts it",
    run = function()
      require("convls.server").stop()
    end,
  })
  actions.add({
    name = "health",
    desc = "Say what was found, and what is wrong",
    run = function()
      vim.cmd.checkhealth("convls")
    end,
  })
end
