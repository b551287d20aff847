local shop = {}

local function price(item)
  local sum = 0
  for i = 1, 60 do sum = sum + (item * i) % 97 end
  return sum
end

local function by_price(a, b) return a.price < b.price end

local function load(n)
  local items = {}
  for i = 1, n do
    items[i] = { id = i, name = "item " .. i, price = price(i) }
  end
  return items
end

local function escape(text)
  return (string.gsub(text, "[<>& ]", { [" "] = "&nbsp;", ["<"] = "&lt;" }))
end

local function row(item)
  return "<li>" .. escape(item.name) .. string.format(" %.2f", item.price / 100) .. "</li>"
end

local function render(items)
  local rows = {}
  for i, item in ipairs(items) do rows[i] = row(item) end
  return table.concat(rows, "\n")
end

local function digest(page)
  return ngx.md5(page)
end

function shop.page()
  local items = load(80)
  table.sort(items, by_price)
  local page = render(items)
  ngx.header["ETag"] = digest(page)
  ngx.say("<ul>", page, "</ul>")
end

return shop
