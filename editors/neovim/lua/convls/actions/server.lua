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
      local server = require("convls.server")
      local runs = server.status().state ~= "off"
      server.stop(function()
        vim.notify("convls: the server " .. (runs and "was stopped" or "is off") .. "; the next command starts it")
      end)
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
