import type { BodyField } from '../../call.ts'

/**
 * Reads numbers at given paths out of JSON that may be cut anywhere and may be hostile. It goes over the bytes once, keeps a list
 * of open brackets instead of recursing, and builds no values. Of a field that occurs twice it takes the larger number, since
 * parsers disagree on which one they read.
 */

/** A field by the names that lead to it: `['usage', 'total_tokens']`. */
export type JsonPath = readonly string[]

/** Paths by their names, for a single pass over the bytes. */
export interface PathTree {
  readonly children: ReadonlyMap<string, PathTree>
  /** The index of the path that ends here; -1 if none does. */
  readonly index: number
  /** The name that leads here, if other spellings of it do as well. */
  readonly name?: string | undefined
  /** Its place among the children of the same object. */
  readonly place?: number | undefined
}

/** The findings at the paths of a tree, by their index. */
export interface JsonNumbers {
  /** Undefined for a field that is absent or null; NaN for one that holds something else than a number. */
  readonly numbers: readonly (number | undefined)[]
  readonly end: 'whole' | 'cut' | 'invalid'
}

/** A field as it is found in a document that parsers may read in several ways; and how the document ends. */
export interface JsonField extends BodyField {
  readonly end: JsonNumbers['end']
}

/** The place where a pass begins: inside objects that were opened before the first byte, right before a name. */
export interface InsideOf {
  readonly at: number
  readonly nodes: readonly (PathTree | undefined)[]
  /** True if the outermost object is an item of a list. */
  readonly isInList: boolean
}

interface Branch {
  readonly children: Map<string, Branch>
  index: number
}

export function pathTree(paths: readonly JsonPath[]): PathTree {
  const root: Branch = { children: new Map(), index: -1 }
  paths.forEach((path, index) => {
    let node = root
    for (const name of path) {
      const next = node.children.get(name) ?? { children: new Map(), index: -1 }
      node.children.set(name, next)
      node = next
    }
    node.index = index
  })
  return root
}

/**
 * Returns a name as the most tolerant parsers compare it: Go and .NET ignore case, Protocol Buffers take `max_tokens` for
 * `maxTokens`, and parsers in C end a name at a NUL. Two steps of case, since the long s and the Kelvin sign are letters of ASCII
 * in one of them only.
 */
export function foldedName(name: string): string {
  const nul = name.indexOf('\0')
  const read = nul < 0 ? name : name.slice(0, nul)
  return read
    .toUpperCase()
    .toLowerCase()
    .replace(/[\s_\-\ufffd]/g, '')
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const LONGEST_NAME = 512
const LONGEST_WORD = 512
const BOM = [0xef, 0xbb, 0xbf] as const

type Expected = 'value' | 'first-item' | 'first-name' | 'name' | 'after'

/** Reads the numbers of all values in `bytes`, one behind another; the items of a list at the top count as such values, too. */
export function jsonNumbers(bytes: Buffer, tree: PathTree, inside?: InsideOf): JsonNumbers {
  const scan = new Scan(bytes, tree, inside)
  const end = scan.run()
  return { numbers: scan.numbers, end }
}

interface FieldBranch {
  readonly children: Map<string, FieldBranch>
  readonly name: string
  readonly place: number
  index: number
}

/** As many names as there are bits in a number. */
const MOST_NAMES = 30

/** Reads fields in all the ways in which parsers may; `undefined` in place of those that need a pass of their own. */
function fieldsInOnePass(bytes: Buffer, paths: readonly JsonPath[]): (JsonField | undefined)[] {
  const root: FieldBranch = { children: new Map(), name: '', place: 0, index: -1 }
  const isIn = paths.map((path, index) => {
    let node: FieldBranch | undefined = root
    for (const name of path) node = node && branchAt(node, name)
    if (node === undefined || node.index >= 0) return false
    node.index = index
    return true
  })
  const scan = new Scan(bytes, root, undefined)
  const end = scan.run()
  const { numbers, lacks, items } = scan
  return isIn.map((isRead, index) => {
    if (!isRead) return undefined
    return { number: numbers[index], mayLack: lacks.has(index), items: items[index] ?? 0, end }
  })
}

/** Returns the branch of a name; undefined if the folded name is that of another child already. */
function branchAt({ children }: FieldBranch, name: string): FieldBranch | undefined {
  const folded = foldedName(name)
  const known = children.get(folded)
  if (known !== undefined) return known.name === name ? known : undefined
  if (children.size === MOST_NAMES) return undefined
  const branch: FieldBranch = { children: new Map(), name, place: children.size, index: -1 }
  children.set(folded, branch)
  return branch
}

/** Reads fields in all the ways in which parsers may, in one pass unless two of them are the same to some parser. */
export function jsonFields(bytes: Buffer, paths: readonly JsonPath[]): readonly JsonField[] {
  const fields = fieldsInOnePass(bytes, paths)
  return fields.map((field, index) => field ?? fieldsInOnePass(bytes, [paths[index]!])[0]!)
}

class Scan {
  readonly numbers: (number | undefined)[] = []
  /** The indexes of fields that a parser may not find, and the lengths of lists; for trees whose names may be spelled otherwise. */
  readonly lacks = new Set<number>()
  readonly items: number[] = []
  readonly #bytes: Buffer
  readonly #root: PathTree
  /** The open brackets, and what may be found in each. */
  readonly #open: number[] = []
  readonly #nodes: (PathTree | undefined)[] = []
  #at: number
  #node: PathTree | undefined
  #expected: Expected = 'value'
  #values = 0
  /** For each open bracket, the places of names that were in it, as bits, or how many items of a list were no numbers. */
  readonly #seen: number[] = []
  /** For each open list, the index of the field that it is; -1 if it is none. */
  readonly #lists: number[] = []

  constructor(bytes: Buffer, root: PathTree, inside: InsideOf | undefined) {
    this.#bytes = bytes
    this.#root = root
    this.#node = root
    this.#at = inside?.at ?? (BOM.every((byte, index) => bytes[index] === byte) ? BOM.length : 0)
    if (inside === undefined) return
    this.#expected = 'name'
    if (inside.isInList) {
      this.#push(OPEN_LIST, root)
      this.#lists.push(-1)
    }
    for (const node of inside.nodes) this.#push(OPEN_OBJECT, node)
  }

  run(): JsonNumbers['end'] {
    for (;;) {
      const byte = this.#nextByte()
      if (byte === undefined) return this.#isBetweenValues && this.#values > 0 ? 'whole' : 'cut'
      const fault = this.#step(byte)
      if (fault !== undefined) return fault
    }
  }

  get #isBetweenValues(): boolean {
    return this.#open.length === 0 && (this.#expected === 'value' || this.#expected === 'after')
  }

  #step(byte: number): 'cut' | 'invalid' | undefined {
    switch (this.#expected) {
      case 'after':
        return this.#after(byte)
      case 'first-item':
        return byte === CLOSE_LIST ? this.#close(byte) : this.#value(byte)
      case 'first-name':
        return byte === CLOSE_OBJECT ? this.#close(byte) : this.#name(byte)
      case 'name':
        return this.#name(byte)
      case 'value':
        return this.#value(byte)
    }
  }

  #after(byte: number): 'cut' | 'invalid' | undefined {
    const top = this.#open.at(-1)
    if (top === undefined) {
      this.#node = this.#root
      return this.#value(byte)
    }
    if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) return this.#close(byte)
    if (byte !== COMMA) return 'invalid'
    this.#at++
    this.#expected = top === OPEN_OBJECT ? 'name' : 'value'
    if (top === OPEN_LIST) this.#node = this.#nodes.at(-1)
    return undefined
  }

  #close(byte: number): 'invalid' | undefined {
    const top = this.#open.pop()
    const node = this.#nodes.pop()
    const seen = this.#seen.pop()!
    if (top === OPEN_LIST) this.#closeList(seen)
    else if (node?.name !== undefined) this.#closeObject(node, seen)
    if (top !== (byte === CLOSE_LIST ? OPEN_LIST : OPEN_OBJECT)) return 'invalid'
    this.#at++
    this.#end()
    return undefined
  }

  #closeList(length: number): void {
    const index = this.#lists.pop()!
    if (index >= 0) this.items[index] = Math.max(this.items[index] ?? 0, length)
  }

  #closeObject({ children }: PathTree, seen: number): void {
    for (const child of children.values()) if ((seen & (1 << child.place!)) === 0) this.#lack(child)
  }

  /** Notes that a parser may find nothing at a node, nor below it. */
  #lack({ index, children, name }: PathTree): void {
    if (name === undefined) return
    if (index >= 0) this.lacks.add(index)
    for (const child of children.values()) this.#lack(child)
  }

  #end(): void {
    this.#expected = 'after'
    if (this.#open.length === 0) this.#values++
  }

  #name(byte: number): 'cut' | 'invalid' | undefined {
    if (byte !== QUOTE) return 'invalid'
    const start = this.#at
    const end = endOfText(this.#bytes, start)
    if (end < 0) return 'cut'
    this.#at = end
    const colon = this.#nextByte()
    if (colon === undefined) return 'cut'
    if (colon !== COLON) return 'invalid'
    this.#at++
    const parent = this.#nodes.at(-1)
    this.#expected = 'value'
    this.#node = undefined
    if (parent === undefined || parent.children.size === 0) return undefined
    if (parent.name !== undefined) return this.#anySpelling(parent, start, end)
    if (end - start <= LONGEST_NAME) this.#node = parent.children.get(this.#nameIn(start, end) ?? '')
    return undefined
  }

  /** Reads a name; undefined if it is no text of JSON. */
  #nameIn(start: number, end: number): string | undefined {
    const text = this.#bytes.toString('utf8', start, end)
    if (!text.includes('\\')) return text.slice(1, -1)
    try {
      return JSON.parse(text) as string
    } catch {
      return undefined
    }
  }

  #anySpelling(parent: PathTree, start: number, end: number): 'invalid' | undefined {
    const name = this.#nameIn(start, end)
    // a parser that is less strict may take it for anything
    if (name === undefined) return 'invalid'
    const child = parent.children.get(foldedName(name))
    this.#node = child
    if (child?.name === name) this.#seen[this.#seen.length - 1]! |= 1 << child.place!
    return undefined
  }

  #value(byte: number): 'cut' | 'invalid' | undefined {
    const node = this.#node
    const isItem = this.#open.at(-1) === OPEN_LIST
    if (isItem && (byte === QUOTE || byte === OPEN_OBJECT || byte === OPEN_LIST)) this.#seen[this.#seen.length - 1]!++
    if (byte !== OPEN_OBJECT && node !== undefined && node.children.size > 0) this.#lack(node)
    if (byte === OPEN_OBJECT) {
      this.#mismatch(node)
      this.#at++
      this.#push(OPEN_OBJECT, node)
      this.#expected = 'first-name'
      return undefined
    }
    if (byte === OPEN_LIST) {
      this.#mismatch(node)
      this.#at++
      this.#push(OPEN_LIST, this.#open.length === 0 ? this.#root : undefined)
      this.#lists.push(node?.index ?? -1)
      this.#node = this.#nodes.at(-1)
      this.#expected = 'first-item'
      return undefined
    }
    return this.#plainValue(byte, node)
  }

  #plainValue(byte: number, node: PathTree | undefined): 'cut' | 'invalid' | undefined {
    if (byte === QUOTE) {
      const end = endOfText(this.#bytes, this.#at)
      if (end < 0) return 'cut'
      this.#mismatch(node)
      this.#at = end
      this.#end()
      return undefined
    }
    const start = this.#at
    while (isOfWord(this.#bytes[this.#at])) this.#at++
    // a number may go on behind the cut
    if (this.#at === this.#bytes.length && this.#open.length > 0) return 'cut'
    // the part of a longer one would be another number
    if (this.#at - start > LONGEST_WORD) return 'invalid'
    const word = this.#bytes.toString('latin1', start, this.#at)
    if (word === 'true' || word === 'false') this.#mismatch(node)
    else if (word === 'null') {
      if (node !== undefined) this.#lack(node)
    } else {
      if (!/^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(word)) return 'invalid'
      if (node !== undefined && node.index >= 0) this.#found(node.index, Number(word))
    }
    this.#end()
    return undefined
  }

  #found(index: number, number: number): void {
    if (number < 1) this.lacks.add(index)
    const before = this.numbers[index]
    this.numbers[index] = before === undefined ? number : Math.max(before, number)
  }

  #mismatch(node: PathTree | undefined): void {
    if (node !== undefined && node.index >= 0) this.#found(node.index, Number.NaN)
  }

  #push(bracket: number, node: PathTree | undefined): void {
    this.#open.push(bracket)
    this.#nodes.push(node)
    this.#seen.push(0)
  }

  #nextByte(): number | undefined {
    for (;;) {
      const byte = this.#bytes[this.#at]
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return byte
      this.#at++
    }
  }
}

/** Returns the place behind the quote that ends the text which begins at `start`; -1 if it is cut. */
function endOfText(bytes: Buffer, start: number): number {
  for (let at = start + 1; ; ) {
    const quote = bytes.indexOf(QUOTE, at)
    if (quote < 0) return -1
    let escapes = 0
    while (bytes[quote - 1 - escapes] === BACKSLASH) escapes++
    if (escapes % 2 === 0) return quote + 1
    at = quote + 1
  }
}

function isOfWord(byte: number | undefined): boolean {
  if (byte === undefined) return false
  const isLetter = (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a
  return isLetter || (byte >= 0x30 && byte <= 0x39) || byte === 0x2d || byte === 0x2b || byte === 0x2e
}
