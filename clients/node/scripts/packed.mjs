// Packs the package, installs it into an empty project, compiles a program that uses its types, and runs the first example of the
// README against a server: CELL_SERVER_CMD is the command that starts one.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const dir = mkdtempSync(join(tmpdir(), 'cellserver-packed-'))
const children = []

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

async function until(what, condition) {
  for (const end = Date.now() + 60_000; !(await condition()); await new Promise((resolve) => setTimeout(resolve, 20))) {
    assert.ok(Date.now() < end, `${what} takes more than a minute`)
  }
}

function start(command, ...args) {
  const child = spawn(command, args, { cwd: dir, stdio: ['ignore', 'inherit', 'inherit'] })
  children.push(child)
  return child
}

try {
  const npm = (...args) => execFileSync('npm', args, { cwd: dir, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  const packed = JSON.parse(execFileSync('npm', ['pack', '--json', '--pack-destination', dir], { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).replace(/^[^[{]*/, ''))
  const archive = (Array.isArray(packed) ? packed[0] : Object.values(packed)[0] ?? packed).filename
  writeFileSync(join(dir, 'package.json'), '{ "private": true, "type": "module" }\n')
  npm('install', '--prefer-offline', '--no-audit', '--no-fund', `./${archive}`, `express@${JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).devDependencies.express}`)

  // The types, as ES modules and as CommonJS.
  for (const name of ['types.mts', 'types.cts']) {
    writeFileSync(join(dir, name), `
import { Limiter, ip, type Result } from 'cellserver-client'
import { cellserver } from 'cellserver-client/express'
import { FakeLimiter } from 'cellserver-client/testing'
const limiter: Limiter = new FakeLimiter({ limits: 'TB 2 1 60', key: ip() })
export const result: Promise<Result> = limiter.check('k', { cost: 2 })
export const handler = cellserver({ url: 'redis://h', policy: 'api', key: (req) => req.url, onUnavailable: 'deny' })
// @ts-expect-error onUnavailable has no default
cellserver({ url: 'redis://h', policy: 'api' })
`)
  }
  mkdirSync(join(dir, 'node_modules', '@types'), { recursive: true })
  for (const name of ['node']) if (!existsSync(join(dir, 'node_modules', '@types', name))) symlinkSync(join(root, 'node_modules', '@types', name), join(dir, 'node_modules', '@types', name))
  symlinkSync(join(root, 'node_modules', 'undici-types'), join(dir, 'node_modules', 'undici-types'))
  execFileSync(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--types', 'node', 'types.mts', 'types.cts'], { cwd: dir, stdio: 'inherit' })

  // The first example.
  const socket = join(dir, 's')
  start(...(process.env.CELL_SERVER_CMD ?? 'cellserver').split(' '), '--port', '0', '--unixsocket', socket, '--dir', dir, '--appendonly', 'no')
  await until('the server', () => existsSync(socket))
  const port = await freePort()
  const example = /```js\n([^]*?)```/.exec(readFileSync(join(root, 'README.md'), 'utf8'))[1]
  for (const text of ['redis://localhost:6379', '3000']) assert.ok(example.includes(text), `the example has ${text}`)
  writeFileSync(join(dir, 'example.mjs'), example.replace('redis://localhost:6379', socket).replace('3000', `${port}, '127.0.0.1'`))
  start(process.execPath, 'example.mjs')
  let first
  await until('the example', async () => (first = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined)) !== undefined)
  const statuses = [first.status]
  let last
  for (let i = 0; i < 9 && last?.status !== 429; i++) statuses.push((last = await fetch(`http://127.0.0.1:${port}/`)).status)
  // The first requests may come before the connection of the limiter: they pass by onUnavailable.
  assert.equal(last.status, 429, `${statuses}`)
  assert.equal(last.headers.get('ratelimit-policy'), '"limit";q=2')
  assert.ok(Number(last.headers.get('retry-after')) > 0)
  console.log(`installed from ${archive}: types compile, and the example answers ${statuses.join(', ')}`)
} finally {
  for (const child of children) child.kill('SIGKILL')
  rmSync(dir, { recursive: true, force: true })
}
