--- Actions on summaries and on what the model reads.
---@param actions { add: fun(action: convls.Action) }
return function(actions)
  -- session calls work with the id of the session that is worked on.
  local function session(work)
    return function(call)
      local current = require("convls.branch").here()
      if current then
        work(current, call)
      end
    end
  end

  -- view calls a method of the context view, or of the chat.
  local function view(method)
    return function()
      local context = require("convls.context").current()
      if context then
        return context[method](context)
      end
      vim.notify("convls: this works in a context view: :Convls context opens one", vim.log.levels.WARN)
    end
  end

  -- verbs returns what may come first after `:Convls compact`.
  local function verbs()
    local all = vim.tbl_keys(require("convls.compact").verbs)
    all[#all + 1] = "here"
    table.sort(all)
    return all
  end

  -- mistyped returns the verb that a word was meant to be. It begins with the same
  -- letter: "the" is not meant to be "here".
  local function mistyped(word)
    local near = word ~= "here" and require("convls.config").nearest(word, verbs())
    return near and near:sub(1, 1) == word:sub(1, 1):lower() and near or nil
  end

  actions.add({
    name = "compact",
    args = "[verb] [words]",
    desc = "Let a summary stand for all but the recent messages; words say what matters to you. The verbs: "
      .. "preview (what it would do), draft (edit the summary, :w commits it), here (up to the message at the cursor), "
      .. "undo, redo, show, list (choose which one stands), verify, rebuild, cancel; behind -- no word is a verb",
    complete = function(_, words)
      return #words > 1 and {} or verbs()
    end,
    run = function(call)
      local compact = require("convls.compact")
      local first, rest = call.args[1], vim.list_slice(call.args, 2)
      if first == "--" then
        return compact.run_words(rest)
      elseif compact.verbs[first] then
        return compact.verbs[first](rest)
      end
      local near = first and mistyped(first)
      if near then
        local text = "convls: there is no :Convls compact %s, did you mean %s? (words: :Convls compact -- %s)"
        return vim.notify(text:format(first, near, call.text), vim.log.levels.ERROR)
      end
      compact.run(vim.deepcopy(call.args))
    end,
  })
  actions.add({
    name = "context",
    desc = "Show what the model will read with the next message, entry by entry, with tokens and why",
    run = session(function(current)
      require("convls.context").open(current.id)
    end),
  })
  actions.add({
    name = "jump",
    desc = "In a context view: go to the message of the entry at the cursor",
    context = { { "n", "<CR>" } },
    run = view("jump"),
  })
  actions.add({
    name = "transcript",
    desc = "Show this branch as a Markdown document, which follows the session",
    run = session(function(current)
      require("convls.document").open(("convls:/session/%s/transcript.md"):format(current.id))
    end),
  })
  actions.add({
    name = "node",
    desc = "Show the message at the cursor as a document: all that is known of it",
    run = function()
      local current, row = require("convls.branch").here()
      if current and row and (row.id or "") ~= "" then
        require("convls.document").open(("convls:/node/%s/%s.md"):format(current.id, row.id))
      end
    end,
  })
end
