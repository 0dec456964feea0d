import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { run } from '../packages/gateway/src/cli/run.ts'
import { commands, listOf, unknownName } from '../scripts/named-commands.mjs'

// The docs and the code name the same things: commands, options, settings, error codes, warnings and variables.

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const pages = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'ARCHITECTURE.md']
const docs = readdirSync(join(root, 'docs')).filter(name => name.endsWith('.md'))
const texts = [...pages, ...docs.map(name => `docs/${name}`)].map(page => ({ page, text: read(page) }))
const everything = texts.map(({ text }) => text).join('\n')

/** All that a pattern's first group finds, once each. */
function found(text: string, pattern: RegExp): string[] {
  return [...new Set([...text.matchAll(pattern)].map(match => match[1]!))].sort()
}

function missingFrom(known: readonly string[], names: readonly string[]): string[] {
  return names.filter(name => !known.includes(name))
}

/** A page's section under a heading of the second level. */
function section(heading: string): string {
  const [, text] = new RegExp(`^## ${heading}\\n([\\s\\S]*?)(?=^## |$(?![\\s\\S]))`, 'm').exec(everything) ?? []
  if (text === undefined) throw new Error(`no page has the heading "## ${heading}"`)
  return text
}

describe('the commands of package.json', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  /** Texts that name commands: pages, comments, and hints that programs print. */
  const named = execFileSync('git', ['ls-files', '*.md', '*.ts', '*.tsx', '*.mjs', '*.yml', '*.yaml', '*Dockerfile'], {
    encoding: 'utf8',
    cwd: root,
  })
    .split('\n')
    .filter(file => file !== '' && file !== 'CHANGELOG.md' && existsSync(join(root, file)))
    .map(file => ({ file, text: read(file) }))
  const unknown = (pattern: RegExp, known: readonly string[]) =>
    named.flatMap(({ file, text }) => missingFrom(known, found(text, pattern)).map(name => `${file}: ${name}`))

  it('every npm command is in the table of CONTRIBUTING.md', () => {
    const listed = found(read('CONTRIBUTING.md'), /^\| `npm (?:run )?([\w:]+)/gm)
    expect(listed).toEqual(
      Object.keys(scripts)
        .filter(name => name !== 'prepare')
        .sort(),
    )
  })

  it('every npm command that a page, a comment or a message names exists', () => {
    expect(named.length).toBeGreaterThan(1000)
    expect(unknown(/\bnpm run (?:--silent |-s )?([a-z][\w:-]*\w)/g, Object.keys(scripts))).toEqual([])
  })

  it.each(['long', 'write'] as const)('every command of npm run %s that a text names exists', kind => {
    expect(unknown(new RegExp(`npm run ${kind} -- ([a-z][\\w:-]*\\w)`, 'g'), Object.keys(commands[kind]))).toEqual([])
  })

  it.each(['long', 'write'] as const)('npm run %s lists its commands, and each of them runs an existing file', kind => {
    for (const [name, { run }] of Object.entries(commands[kind])) {
      expect(listOf(kind)).toMatch(new RegExp(`^  ${name} +\\S`, 'm'))
      expect(run.filter(word => /\.(?:mjs|ts)$/.test(word) && !existsSync(join(root, word)))).toEqual([])
    }
  })

  it('a name that npm run long does not know gets the nearest one', () => {
    expect(unknownName('long', 'choas')).toBe('There is no command "choas" of npm run long: did you mean chaos?')
    expect(unknownName('long', 'chaos:restart')).toContain('did you mean chaos-restart?')
    expect(unknownName('long', 'elephant')).toContain('npm run long lists the names')
  })
})

describe('the command line', async () => {
  const help = async (...args: string[]): Promise<string> => {
    const lines: string[] = []
    const print = (line: string) => void lines.push(line)
    expect(await run(args, { input: [] as never, print, printError: print })).toBe(0)
    return lines.join('\n')
  }
  const commands = found(await help('help'), /^ *(?:diana )?([a-z]+) {2,}/gm)

  it('the test finds the commands of the command line', () => {
    expect(commands).toEqual(expect.arrayContaining(['check', 'explain', 'start', 'top']))
  })

  it('one table of the docs lists the commands, as `diana help` does', async () => {
    const rows = [...everything.matchAll(/^\| \[`diana ([a-z]+)`\]\([^)]*\) \| (.*) \|$/gm)]
    const helped = [...(await help('help')).matchAll(/^ {2}([a-z]+) {2,}(.*)$/gm)]
    expect(rows.map(([, name, summary]) => [name, summary])).toEqual(helped.map(([, name, summary]) => [name, summary]))
    expect(rows.length).toBe(commands.length)
  })

  it.each(commands)('a section "diana %s" names the options of the command, and no others', async name => {
    const options = /(?<![\w-])(--?[a-z][a-z-]*|-[A-Z])(?![\w-])/g
    const own = section(`diana ${name}`)
    const known = found(await help(name, '--help'), options)
    expect(missingFrom(found(own, options), known)).toEqual([])
    const usage = [...own.matchAll(/^(?:\$ )?(?:npx )?diana [a-z]+ .*$|^\| `-.*$/gm)].join('\n')
    expect(missingFrom([...known, '--help', '-H'], found(usage, options))).toEqual([])
  })
})

describe('the rule file', () => {
  interface Schema {
    readonly properties?: Record<string, Schema>
    readonly [key: string]: unknown
  }
  const settings = new Map<string, Set<string>>()
  const schema = JSON.parse(read('docs/diana.schema.json')) as Schema

  function collect(value: unknown, parent: string): void {
    if (typeof value !== 'object' || value === null) return
    for (const [key, inner] of Object.entries(value as Schema)) {
      if (key !== 'properties') collect(inner, parent)
      else {
        for (const [name, setting] of Object.entries(inner as object)) {
          settings.set(parent, (settings.get(parent) ?? new Set()).add(name))
          collect(setting, name)
        }
      }
    }
  }
  collect(schema, '')

  it('every setting of the rule file is in the docs', () => {
    const all = [...settings.values()].flatMap(names => [...names])
    const isShown = (name: string): boolean =>
      new RegExp(`\`[^\`\\n]*(?<![\\w-])${name}(?![\\w-])[^\`\\n]*\`|^[^\`\\n]*(?<![\\w-])${name}: `, 'm').test(
        everything,
      )
    expect(all.length).toBeGreaterThan(100)
    expect([...new Set(all)].filter(name => !isShown(name))).toEqual([])
  })

  it('every setting that a page names exists in the rule file', () => {
    const sections = [...settings.keys(), 'gateway'].filter(name => name !== '')
    // what is measured has names with dots, too
    const named = found(
      everything.replace(read('docs/metrics.md'), ''),
      /`((?:[a-z][A-Za-z0-9]*\.)+[a-z][A-Za-z0-9]*)`/g,
    ).map(path => path.split('.'))
    const wrong = named.filter(path =>
      path.some((name, at) => at > 0 && sections.includes(path[at - 1]!) && !settings.get(path[at - 1]!)!.has(name)),
    )
    expect(wrong.map(path => path.join('.'))).toEqual([])
  })
})

describe('codes', () => {
  const sources = ['limiter', 'gateway'].flatMap(folder =>
    (readdirSync(join(root, 'packages', folder, 'src'), { recursive: true }) as string[])
      .filter(name => name.endsWith('.ts') && !/\.test\.ts$|testing/.test(name))
      .map(name => read(`packages/${folder}/src/${name.replaceAll('\\', '/')}`)),
  )
  const code = sources.join('\n')
  // what the gateway's own parts call each other's errors and variables, and what applications import
  const internal = [
    'DIANA_ANSWER_NOT_TAKEN',
    'DIANA_SOCKETS',
    'DIANA_HTTP',
    'DIANA_DEADLINE',
    'DIANA_PROCESS',
    'DIANA_LIMITER',
  ]

  it('docs/library.md lists exactly the error codes', () => {
    const union = sources.map(text => /export type ErrorCode =\n((?: {2}\| '.*\n)+)/.exec(text)?.[1] ?? '').join('')
    const listed = found(read('docs/library.md'), /^\| `([A-Z_]+)` \|/gm)
    expect(listed).toEqual(found(union, /'([A-Z_]+)'/g))
    expect(listed.length).toBeGreaterThan(3)
  })

  it('the docs list exactly the warning codes and environment variables', () => {
    const inCode = found(code, /(?<!\w)(DIANA_[A-Z_]*[A-Z])(?!\w)/g).filter(name => !internal.includes(name))
    const inDocs = found(everything, /(?<!\w)(DIANA_[A-Z_]*[A-Z])(?!\w)/g).filter(name => !internal.includes(name))
    // read by the configuration of Vite
    expect(inDocs.filter(name => name !== 'DIANA_RULES')).toEqual(inCode)
  })
})
