/** The place of a cursor in a YAML text: the keys above it, and whether a key or a value is being written. */
export interface Place {
  /** Keys from the top down; `[]` is an item of a list. */
  readonly path: readonly string[]
  readonly kind: 'key' | 'value'
  /** The part of the word that is already written. */
  readonly prefix: string
}

interface Entry {
  /** The column of each dash of the line. */
  readonly dashes: readonly number[]
  /** The column of the text after the dashes. */
  readonly column: number
  readonly key: string | undefined
  /** The text after the dashes and the key. */
  readonly rest: string
}

const LINE = /^(\s*)((?:-\s+|-$)*)(.*)$/
const KEY = /^(["']?)([\w.:/-]+?)\1\s*:(?:\s+(.*)|$)/

/** Returns the place by indentation rather than by a syntax tree, since the text around a cursor is rarely complete. */
export function placeAt(text: string, offset: number): Place {
  const lines = text.slice(0, offset).split('\n')
  const current = readEntry(lines.at(-1)!)
  const parents = parentsOf(lines, current)
  if (current.key !== undefined) return inFlow([...parents, current.key], 'value', current.rest)
  return inFlow(parents, 'key', current.rest)
}

function readEntry(line: string): Entry {
  const [, indent = '', dashText = '', body = ''] = LINE.exec(line) ?? []
  const dashes = [...dashText].flatMap((character, index) => (character === '-' ? [indent.length + index] : []))
  const [, , key, rest] = KEY.exec(body) ?? []
  return { dashes, column: indent.length + dashText.length, key, rest: key === undefined ? body : (rest ?? '') }
}

function parentsOf(lines: readonly string[], current: Entry): string[] {
  const path: string[] = current.dashes.map(() => '[]')
  let threshold = current.dashes[0] ?? current.column
  let isItem = current.dashes.length > 0
  for (let index = lines.length - 2; index >= 0; index--) {
    const line = lines[index]!
    if (/^\s*(?:#|$)/.test(line)) continue
    const { dashes, column, key, rest } = readEntry(line)
    const isParent = key !== undefined && (column < threshold || (isItem && column === threshold && rest === ''))
    const isSameItem = !isItem && column === threshold && dashes.length > 0
    if (!isParent && !isSameItem) continue
    if (isParent) path.unshift(key)
    path.unshift(...dashes.map(() => '[]'))
    threshold = dashes[0] ?? column
    isItem = dashes.length > 0
  }
  return path
}

/** Follows the braces and brackets that are still open on the line. */
function inFlow(path: readonly string[], kind: Place['kind'], written: string): Place {
  const open: { readonly isList: boolean; key: string | undefined }[] = []
  let word = ''
  for (const character of written) {
    const inner = open.at(-1)
    if (character === '{' || character === '[') open.push({ isList: character === '[', key: undefined })
    else if (character === '}' || character === ']') open.pop()
    else if (character === ',' && inner) inner.key = undefined
    else if (character === ':' && inner && !inner.isList && inner.key === undefined) inner.key = word.trim()
    else {
      word += character
      continue
    }
    word = ''
  }
  const inner = open.at(-1)
  const prefix = word.trimStart()
  if (inner === undefined) return { path, kind, prefix }
  const steps = open.flatMap(({ isList, key }) => (isList ? ['[]'] : key === undefined ? [] : [key]))
  return { path: [...path, ...steps], kind: inner.isList || inner.key !== undefined ? 'value' : 'key', prefix }
}
