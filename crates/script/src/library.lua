-- Functions of the standard library, in Lua, so that Lua counts their instructions; those in C run for as long as their
-- arguments say. Lines of this file are removed from messages, and no message shows an address.

local c = ...
local type, select, raise, tointeger = c.type, c.select, c.error, c.tointeger
local c_tostring, c_rep, next_match = c.tostring, c.rep, c.next_match

-- The text of a value; for a table or function it has no address.
local function text_of(value)
  local kind = type(value)
  if kind == 'nil' or kind == 'boolean' or kind == 'number' or kind == 'string' then
    return c_tostring(value)
  end
  return kind
end

local function message_of(value)
  local kind = type(value)
  if kind == 'string' or kind == 'number' then
    return value
  end
  return '(error object is a ' .. kind .. ' value)'
end

-- Raises an error at the caller of the library's function.
local function refuse(index, name, why)
  raise("bad argument #" .. index .. " to '" .. name .. "' (" .. why .. ")", 3)
end

local function check_table(list, name)
  if type(list) ~= 'table' then
    raise("bad argument #1 to '" .. name .. "' (table expected, got " .. type(list) .. ")", 3)
  end
end

local base, tables, strings = {}, {}, {}

function base.tostring(...)
  if select('#', ...) == 0 then
    refuse(1, 'tostring', 'value expected')
  end
  return text_of((...))
end

function base.error(message, level)
  level = level or 1
  if level > 0 then
    level = level + 1
  end
  raise(message_of(message), level)
end

function base.assert(...)
  if select('#', ...) == 0 then
    refuse(1, 'assert', 'value expected')
  end
  if (...) then
    return ...
  end
  if select('#', ...) == 1 then
    raise('assertion failed!', 0)
  end
  raise(message_of((select(2, ...))), 0)
end

-- In a table with holes, `#` may be any index before a hole, up to the largest integer.
function tables.insert(list, ...)
  check_table(list, 'insert')
  local count, size = select('#', ...), #list
  if count == 1 then
    list[size + 1] = (...)
    return
  end
  if count ~= 2 then
    raise("wrong number of arguments to 'insert'", 2)
  end
  local place, value = ...
  place = tointeger(place)
  if not place then
    refuse(2, 'insert', 'number expected')
  end
  if place < 1 or place > size + 1 then
    refuse(2, 'insert', 'position out of bounds')
  end
  for index = size + 1, place + 1, -1 do
    list[index] = list[index - 1]
  end
  list[place] = value
end

function tables.remove(list, place)
  check_table(list, 'remove')
  local size = #list
  if place == nil then
    place = size
  else
    place = tointeger(place)
    if not place then
      refuse(2, 'remove', 'number expected')
    end
    if place ~= size and (place < 1 or place > size + 1) then
      refuse(2, 'remove', 'position out of bounds')
    end
  end
  local removed = list[place]
  while place < size do
    list[place] = list[place + 1]
    place = place + 1
  end
  list[place] = nil
  return removed
end

-- Runs of this length are sorted by insertion, then merged.
local RUN = 8

local function sort_runs(list, size, less)
  for start = 1, size, RUN do
    local stop = start + RUN - 1
    if stop > size then
      stop = size
    end
    for index = start + 1, stop do
      local value, place = list[index], index - 1
      while place >= start do
        local other, is_before = list[place], nil
        if less then
          is_before = less(value, other)
        else
          is_before = value < other
        end
        if not is_before then
          break
        end
        list[place + 1] = other
        place = place - 1
      end
      list[place + 1] = value
    end
  end
end

-- Merges from[start .. middle - 1] and from[middle .. stop] into the same places of another table.
local function merge(from, into, start, middle, stop, less)
  local left, right = start, middle
  for index = start, stop do
    local is_right = left >= middle
    if not is_right and right <= stop then
      if less then
        is_right = less(from[right], from[left])
      else
        is_right = from[right] < from[left]
      end
    end
    if is_right then
      into[index] = from[right]
      right = right + 1
    else
      into[index] = from[left]
      left = left + 1
    end
  end
end

function tables.sort(list, less)
  check_table(list, 'sort')
  if less ~= nil and type(less) ~= 'function' then
    refuse(2, 'sort', 'function expected, got ' .. type(less))
  end
  local size = #list
  sort_runs(list, size, less)
  local from, into, width = list, {}, RUN
  while width < size do
    for start = 1, size, 2 * width do
      local middle, stop = start + width, start + 2 * width - 1
      if stop > size then
        stop = size
      end
      if middle > size then
        middle = size + 1
      end
      merge(from, into, start, middle, stop, less)
    end
    from, into, width = into, from, 2 * width
  end
  if from ~= list then
    for index = 1, size do
      list[index] = from[index]
    end
  end
end

-- In C, repeating an empty text takes as long as repeating any other.
function strings.rep(text, count, separator)
  if text == '' and (separator == nil or separator == '') then
    return ''
  end
  return c_rep(text, count, separator)
end

function strings.gmatch(text, pattern, init)
  local place = nil
  local function take(follows, ...)
    place = follows
    return ...
  end
  return function()
    return take(next_match(text, pattern, init, place))
  end
end

return base, tables, strings
