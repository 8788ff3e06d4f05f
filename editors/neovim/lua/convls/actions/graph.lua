--- Actions on the graph and its branches.
---@param actions { add: fun(action: convls.Action) }
return function(actions)
  local function graph(method)
    return function()
      local current = require("convls.graph").current()
      if current then
        return current[method](current)
      end
      vim.notify("convls: this works in a graph: :Convls graph opens one", vim.log.levels.WARN)
    end
  end

  local function branch(method)
    return function(call)
      require("convls.branch")[method](call.text)
    end
  end

  local function branches()
    return require("convls.branch").names()
  end

  actions.add({
    name = "graph",
    desc = "Draw the graph of this session: lanes, HEAD, branches, summaries",
    run = function()
      local chat = require("convls.chat").need()
      if chat then
        require("convls.graph").open(chat.session.id)
      end
    end,
  })
  actions.add({
    name = "branches",
    desc = "Choose a branch and go there",
    run = function()
      require("convls.branch").pick()
    end,
  })
  actions.add({
    name = "checkout",
    args = "[branch]",
    desc = "Go to a branch, or to the message at the cursor; what you send next follows it",
    graph = { { "n", "<CR>" } },
    complete = branches,
    run = branch("checkout"),
  })
  actions.add({
    name = "fork",
    args = "[name]",
    desc = "Begin a branch with a name at the message at the cursor, and go there",
    graph = { { "n", "f" } },
    run = branch("fork"),
  })
  actions.add({
    name = "rename",
    args = "[name]",
    desc = "Name the branch that ends at the cursor, or name it anew",
    graph = { { "n", "r" } },
    run = branch("rename"),
  })
  actions.add({
    name = "delete",
    args = "[branch]",
    desc = "Delete what only this branch, or the one that ends at the cursor, has; asks first and tells how much",
    graph = { { "n", "d" } },
    complete = branches,
    run = branch("delete"),
  })
  actions.add({
    name = "compare",
    args = "[branch]",
    desc = "Show what HEAD's branch and another one, or the one at the cursor, added since they parted",
    graph = { { "n", "c" } },
    complete = branches,
    run = branch("compare"),
  })
  actions.add({
    name = "expand",
    desc = "Show what the summary at the cursor stands for, or in a graph what the message called; or fold it again",
    keys = { { "n", "gs" } },
    graph = { { "n", "za" }, { "n", "<Tab>" } },
    run = function()
      local current = require("convls.graph").current()
      if current then
        return current:toggle()
      end
      local chat = require("convls.chat").need()
      if chat then
        chat:expand()
      end
    end,
  })
  actions.add({
    name = "hover",
    desc = "Show the node at the cursor and what it read; of a summary the goal, constraints and open tasks, "
      .. "where <CR> leads to the message that says so",
    keys = { { "n", "K" } },
    graph = { { "n", "K" } },
    context = { { "n", "K" } },
    run = function()
      local current = require("convls.graph").current()
        or require("convls.context").current()
        or require("convls.chat").need()
      if current then
        current:hover()
      end
    end,
  })
  actions.add({
    name = "reads",
    desc = "In a graph: mark what the reply or summary at the cursor has read; again: no marks",
    graph = { { "n", "m" } },
    run = graph("reads"),
  })
  actions.add({
    name = "refresh",
    desc = "In a graph: ask for it anew",
    graph = { { "n", "R" } },
    run = graph("refresh"),
  })
end
