// Builds the package twice: as ES modules below dist/esm and as CommonJS below dist/cjs. The nearest
// package.json says which of the two a file is, both for Node and for TypeScript.
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc')

function compile(...options) {
  const { status } = spawnSync(process.execPath, [compiler, '-p', join(root, 'tsconfig.json'), ...options], { stdio: 'inherit', cwd: root })
  if (status !== 0) process.exit(status ?? 1)
}

rmSync(join(root, 'dist'), { recursive: true, force: true })
compile('--outDir', 'dist/esm')
compile('--outDir', 'dist/cjs', '--module', 'CommonJS', '--moduleResolution', 'bundler')
mkdirSync(join(root, 'dist', 'cjs'), { recursive: true })
writeFileSync(join(root, 'dist', 'cjs', 'package.json'), '{ "type": "commonjs" }\n')
