// Runs speedscope's importer outside a browser: reads a profile, prints what speedscope saw.
//
//     node speedscope_import.js DIR FILE
//
// DIR is speedscope as npm installs it, FILE a profile. The output is one line with the unit that
// speedscope shows and the total weight, then the stacks as folded text, sorted.
'use strict'
const fs = require('node:fs')
const path = require('node:path')
const vm = require('node:vm')

const [dir, file] = process.argv.slice(2)
const release = path.join(dir, 'dist', 'release')
const bundle = fs.readdirSync(release).find(name => /^speedscope-.*\.js$/.test(name))
const source = fs.readFileSync(path.join(release, bundle), 'utf8')

// The bundle is one closed function that ends by drawing the page. The importer is a module in
// it, behind a promise; one more statement in front of its first use hands that promise out.
const use = /async function [\w$]+\([\w$]+,[\w$]+\)\{return\(await ([\w$]+)\)\.importProfileGroupFromBase64/
const found = use.exec(source)
if (!found) throw new Error(`${bundle} has no importProfileGroupFromBase64`)
const head = source.slice(0, found.index)
const tail = source.slice(found.index)
const patched = `${head};globalThis.importer=${found[1]};${tail}`

// There is no page: whatever is asked of it exists and does nothing.
const nothing = new Proxy(function () {}, {
  get: (_, key) => (key === Symbol.toPrimitive ? () => '' : nothing),
  set: () => true,
  apply: () => nothing,
  construct: () => nothing,
})
const page = {
  atob, btoa, console: { ...console, log() {} }, setTimeout, clearTimeout, TextDecoder, TextEncoder,
  URL, WebAssembly, performance, navigator: { platform: '', userAgent: '' }, document: nothing,
  location: { hash: '', protocol: 'file:', href: 'file:///' }, requestAnimationFrame() {},
  localStorage: { getItem: () => null, setItem() {} }, addEventListener() {},
  matchMedia: () => ({ matches: false, addEventListener() {}, addListener() {} }),
}
page.window = page.self = page
vm.createContext(page)
try {
  vm.runInContext(patched, page, { filename: bundle })
} catch (error) {
  // Drawing cannot work; the importer was handed out before.
  if (!page.importer) throw error
}

async function main() {
  const importer = await page.importer
  const bytes = fs.readFileSync(file).toString('base64')
  const group = await importer.importProfileGroupFromBase64(path.basename(file), bytes)
  if (!group) throw new Error('speedscope does not recognise the file')
  const profile = group.profiles[group.indexToView]
  const stacks = {}
  let stack = []
  let last = 0
  const until = value => {
    if (value > last) stacks[stack.join(';')] = (stacks[stack.join(';')] || 0) + value - last
    last = value
  }
  profile.forEachCall(
    (node, value) => { until(value); stack.push(node.frame.name) },
    (_, value) => { until(value); stack.pop() },
  )
  until(profile.getTotalWeight())
  console.log(`${profile.valueFormatter.unit} ${profile.getTotalWeight()}`)
  for (const stack of Object.keys(stacks).sort()) console.log(`${stack} ${stacks[stack]}`)
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
