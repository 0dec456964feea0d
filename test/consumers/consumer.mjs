import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const here = fileURLToPath(new URL('.', import.meta.url))
const execute = promisify(execFile)
const programs = ['program.mjs', 'program.cjs', 'in-code.mjs', 'light.mjs', 'first-call.mjs', 'pace.mjs', 'types.ts']

/** A project that has the packed library and nothing of this repository, besides modules that are linked by name. */
export class Consumer {
  constructor(folder, tarball) {
    this.folder = folder
    this.tarball = tarball
    this.ruleFile = join(folder, 'diana.yaml')
  }

  /** Makes the project in an empty folder: `modules` is the node_modules that links lead to. */
  static async create(folder, { tarball, modules, links }) {
    const consumer = new Consumer(folder, tarball)
    const library = join(folder, 'node_modules/diana-limiter')
    mkdirSync(library, { recursive: true })
    await execute('tar', ['-xzf', tarball, '-C', library, '--strip-components=1'])
    for (const name of links) {
      const link = join(folder, 'node_modules', name)
      mkdirSync(dirname(link), { recursive: true })
      symlinkSync(join(modules, name), link, 'junction')
    }
    for (const name of programs) cpSync(join(here, name), join(folder, name))
    writeFileSync(join(folder, 'package.json'), '{ "name": "consumer", "private": true }\n')
    // longer than what is read without a thread
    const padding = '# a rule file as long as those of many routes\n'.repeat(200)
    writeFileSync(consumer.ruleFile, `${padding}rules:\n  - { id: all, limit: 2/m }\n`)
    return consumer
  }

  path(name) {
    return join(this.folder, name)
  }

  /** Runs a program of the project; resolves to what it printed. */
  async run(name, ...args) {
    const { stdout } = await execute(process.execPath, [this.path(name), ...args], { cwd: this.folder })
    return stdout.trim()
  }

  /** Runs Node in the project; resolves to its exit code and what it printed. */
  async node(args, cwd = this.folder) {
    const done = execute(process.execPath, args, { cwd, timeout: 60_000 })
    const { code = 0, stdout, stderr } = await done.catch(error => error)
    return { code, output: `${stdout}${stderr}`.trim() }
  }

  /** Compiles programs as an ES module of a strict project; resolves to what the compiler printed. */
  async compilePrograms(compiler, paths) {
    const files = paths.map(path => basename(path))
    paths.forEach((path, i) => void cpSync(path, this.path(files[i])))
    const strict = { strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true }
    const compilerOptions = { ...strict, module: 'nodenext', target: 'es2023', types: ['node'], noEmit: true }
    writeFileSync(this.path('package.json'), '{ "name": "consumer", "private": true, "type": "module" }\n')
    writeFileSync(this.path('tsconfig.json'), JSON.stringify({ compilerOptions, files }))
    const { output } = await this.node([compiler, '-p', this.folder])
    writeFileSync(this.path('package.json'), '{ "name": "consumer", "private": true }\n')
    return output
  }

  /** Compiles `types.ts` under the name of an ES module or a CommonJS one; resolves to what the compiler printed. */
  async compile(compiler, extension, options) {
    const name = `types${extension}`
    if (name !== 'types.ts') cpSync(this.path('types.ts'), this.path(name))
    const usual = { strict: true, target: 'es2022', types: ['node'], outDir: 'out', skipLibCheck: true }
    const compilerOptions = { ...usual, esModuleInterop: true, ...options }
    writeFileSync(this.path('tsconfig.json'), JSON.stringify({ compilerOptions, files: [name] }))
    const { output } = await this.node([compiler, '-p', this.folder])
    return output
  }
}

/** What a file system with blocks of 4 KiB takes for a folder, so that the figure is the same on each. */
export function diskBytes(path) {
  const stats = statSync(path)
  const own = Math.ceil(stats.size / 4096) * 4096
  if (!stats.isDirectory()) return own
  return readdirSync(path).reduce((sum, name) => sum + diskBytes(join(path, name)), 4096)
}

/** The most that the installed library may take. */
export const MOST_DISK_BYTES = 2_000_000

/** What the library needs at run time, and what the types of `types.ts` need. */
export const runtimeLinks = []
/** What applications of `first-try.mjs` install beside it. */
export const frameworkLinks = ['express', 'fastify', 'koa', 'hono', '@hono/node-server', 'vitest']
export const typeLinks = ['@types/node', '@types/express']

/** How applications resolve types: the extension of the module, and the options of the compiler. */
export const resolutions = [
  { title: 'CommonJS with module nodenext', extension: '.cts', options: { module: 'nodenext' } },
  {
    title: 'a bundler',
    extension: '.ts',
    options: { module: 'esnext', moduleResolution: 'bundler', skipLibCheck: false },
  },
]

/** More of them, for `npm run long -- packages`. */
export const moreResolutions = [
  { title: 'an ES module with module node16', extension: '.mts', options: { module: 'node16' } },
  { title: 'an ES module with module nodenext', extension: '.mts', options: { module: 'nodenext' } },
  {
    title: 'CommonJS with module commonjs and moduleResolution bundler',
    extension: '.ts',
    options: { module: 'commonjs', moduleResolution: 'bundler' },
  },
]
