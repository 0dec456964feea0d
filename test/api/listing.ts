import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** One file of declarations as `tsc` writes it: what it declares, and where its other names come from. */
interface Declarations {
  readonly declared: ReadonlyMap<string, string>
  /** A name here → the file and the name there; `*` is for whole modules. */
  readonly imported: ReadonlyMap<string, Origin>
  readonly exported: ReadonlyMap<string, Origin>
}

interface Origin {
  readonly file: string
  readonly name: string
}

const files = new Map<string, Declarations>()

/**
 * Lists what an entry of a package exports, with the types: first the exported names in alphabetical order, then the types
 * that they refer to and that have no exported name. Comments and private members are left out, and so are types that the
 * list of `main` has.
 */
export function listApi(entry: string, main?: string): string {
  const exported = exportsOf(entry)
  if (exported.length === 0) throw new Error(`${entry} exports nothing`)
  const known = main === undefined || main === entry ? [] : [...exportsOf(main), ...reachedFrom(exportsOf(main))]
  const others = reachedFrom(exported, known).map(textOf)
  const title = others.length > 0 ? ['', '// types without an exported name'] : []
  return [...exported.map(textOf), ...title, ...others.sort(), ''].join('\n')
}

function exportsOf(entry: string): Origin[] {
  const exported = [...readDeclarations(entry).exported].sort(([one], [other]) => (one < other ? -1 : 1))
  return exported.map(([, origin]) => settle(origin))
}

/** What is referred to from some declarations, directly or not, besides themselves and what is known. */
function reachedFrom(start: readonly Origin[], known: readonly Origin[] = []): Origin[] {
  const done = new Set([...start, ...known].map(keyOf))
  const reached: Origin[] = []
  const queue = [...start]
  for (const one of queue) {
    for (const origin of referencesOf(one).filter(origin => !done.has(keyOf(origin)))) {
      done.add(keyOf(origin))
      queue.push(origin)
      reached.push(origin)
    }
  }
  return reached
}

const keyOf = ({ file, name }: Origin): string => `${file}#${name}`

function textOf(origin: Origin): string {
  return readDeclarations(origin.file).declared.get(origin.name) ?? `${origin.name} from ${origin.file}`
}

/** The file that declares a name, behind all files that only pass it on. */
function settle(origin: Origin): Origin {
  if (!existsSync(origin.file)) return origin
  const { declared, imported, exported } = readDeclarations(origin.file)
  if (declared.has(origin.name)) return origin
  const next = exported.get(origin.name) ?? imported.get(origin.name)
  return next === undefined || keyOf(next) === keyOf(origin) ? origin : settle(next)
}

/** The declarations of this package that a declaration refers to. */
function referencesOf(origin: Origin): Origin[] {
  if (!existsSync(origin.file)) return []
  const { declared, imported } = readDeclarations(origin.file)
  const names = new Set(declared.get(origin.name)?.match(/[A-Za-z_$][\w$]*/g))
  return [...names]
    .flatMap(name => (declared.has(name) ? [{ file: origin.file, name }] : (imported.get(name) ?? [])))
    .map(settle)
    .filter(({ file, name }) => existsSync(file) && readDeclarations(file).declared.has(name))
}

function readDeclarations(file: string): Declarations {
  const known = files.get(file)
  if (known) return known
  const declared = new Map<string, string>()
  const imported = new Map<string, Origin>()
  const exported = new Map<string, Origin>()
  for (const statement of statementsOf(readFileSync(file, 'utf8'))) {
    const passed = /^(import|export) (?:type )?\{([^}]*)\}(?: from '([^']+)')?/.exec(statement)
    const star = /^export (?:type )?\* from '([^']+)'/.exec(statement)
    const declares =
      /^(export )?(?:declare )?(?:abstract )?(?:class|function|const|let|type|interface|enum) ([\w$]+)/.exec(statement)
    if (star) {
      for (const [name, origin] of readDeclarations(resolveTypes(file, star[1]!)).exported) exported.set(name, origin)
    } else if (passed) {
      const [, kind, list, from] = passed
      const target = from === undefined ? file : resolveTypes(file, from)
      for (const item of list!
        .split(',')
        .map(text => text.trim().replace(/^type /, ''))
        .filter(Boolean)) {
        const [name, alias = name] = item.split(' as ') as [string, string?]
        ;(kind === 'import' ? imported : exported).set(alias!, { file: target, name })
      }
    } else if (declares) {
      const name = declares[2]!
      declared.set(name, [declared.get(name), statement].filter(Boolean).join('\n'))
      if (declares[1]) exported.set(name, { file, name })
    } else if (!/^import |^export \* as |^export \{\}/.test(statement))
      throw new Error(`${file}: cannot list "${statement}"`)
  }
  const declarations = { declared, imported, exported }
  files.set(file, declarations)
  return declarations
}

/** A relative import leads to a file of declarations; the name of another package stays as it is. */
function resolveTypes(file: string, from: string): string {
  return from.startsWith('.') ? resolve(dirname(file), from).replace(/\.[tj]s$/, '.d.ts') : from
}

/** The statements at the top of a file that `tsc` wrote: all that is inside of one is indented, or closes it. */
function statementsOf(text: string): string[] {
  const lines = text
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .split('\n')
    .filter(line => line.trim() !== '' && !/^\s*(?:#private;|private |\/\/)/.test(line))
  const statements: string[] = []
  for (const line of lines) {
    if (/^(?:export|import|declare|type|interface|abstract|class|const|function) ?/.test(line)) statements.push(line)
    else statements[statements.length - 1] += `\n${line}`
  }
  return statements
}
