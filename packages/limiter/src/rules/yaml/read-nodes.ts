import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  type Pair,
  type Scalar,
  type YAMLMap,
} from 'yaml'
import { escapeText, show } from '../show.ts'
import type { Fault } from './compose-yaml.ts'

/** The plain values of a YAML document, and the position of each. */
export interface Nodes {
  readonly value: unknown
  readonly faults: readonly Fault[]
  /** False if the document was too large to be read to the end. */
  readonly isWhole: boolean
  /** Returns the offset of the value at a path, or of the nearest value around it. */
  offsetOf(path: readonly PropertyKey[], atName: boolean): number
  /** Returns which item of a list at the top an offset lies in. */
  itemAt(word: string, offset: number): number
}

interface Read {
  readonly value: unknown
  /** The number of values once all aliases are followed. */
  readonly size: number
}

const MAX_REPEATED = 1_000_000
const MAX_ITEMS = 10_000
const MAX_ENTRIES = 1000
const MAX_FAULTS = 100
const nothing: Read = { value: null, size: 1 }

/** Reads a document's nodes; aliases share one value, so that a bomb of them costs nothing to read. */
export function readNodes(document: Document.Parsed): Nodes {
  const reader = new NodeReader()
  const { value } = reader.read(document.contents)
  return {
    value,
    faults: reader.faults,
    isWhole: reader.isWhole,
    offsetOf: (path, atName) => reader.offsetOf(document.contents, path, atName),
    itemAt: (word, offset) => reader.itemAt(document.contents, word, offset),
  }
}

class NodeReader {
  readonly faults: Fault[] = []
  isWhole = true
  readonly #anchors = new Map<string, unknown>()
  readonly #targets = new Map<Alias, unknown>()
  readonly #pairs = new Map<YAMLMap, Map<string, Pair>>()
  readonly #done = new Map<unknown, Read>()
  #repeated = 0

  read(node: unknown): Read {
    if (isAlias(node)) return this.#readAlias(node)
    if (isNode(node) && 'anchor' in node && node.anchor) this.#anchors.set(node.anchor, node)
    const read = this.#readPlain(node)
    if (isNode(node) && 'anchor' in node && node.anchor) this.#done.set(node, read)
    return read
  }

  #readPlain(node: unknown): Read {
    if (isMap(node)) return this.#readMap(node)
    if (isScalar(node)) return this.#readScalar(node)
    if (!isSeq(node)) return nothing
    if (node.items.length > MAX_ITEMS) {
      return this.#giveUp(node, `this list has ${node.items.length} things: use fewer, at most ${MAX_ITEMS} are read`)
    }
    const items = node.items.map(item => this.read(item))
    return { value: items.map(item => item.value), size: sum(items) }
  }

  #readMap(map: YAMLMap): Read {
    if (map.items.length > MAX_ENTRIES) {
      return this.#giveUp(map, `this map has ${map.items.length} entries: use fewer, at most ${MAX_ENTRIES} are read`)
    }
    const pairs = new Map<string, Pair>()
    this.#pairs.set(map, pairs)
    const entries: (Read & { key: string })[] = []
    for (const pair of map.items) {
      const key = this.#readKey(pair, pairs)
      // read even without a key: an anchor in it may be named later
      const read = this.read(pair.value)
      if (key !== undefined) entries.push({ key, ...read })
    }
    return { value: Object.fromEntries(entries.map(({ key, value }) => [key, value])), size: sum(entries) }
  }

  #readKey(pair: Pair, pairs: Map<string, Pair>): string | undefined {
    const key = isScalar(pair.key) ? wordOf(pair.key) : undefined
    if (key === undefined) this.#fault(pair.key ?? pair.value, 'a list, a map or an alias cannot be a word: write text')
    else if (key === '__proto__') this.#fault(pair.key, '__proto__ cannot be a word: choose another')
    else if (key === '<<') this.#fault(pair.key, '<< merges nothing here: write the options out')
    else if (pairs.has(key)) this.#fault(pair.key, `${show(key)} is given twice here: keep one of them`)
    else pairs.set(key, pair)
    return key !== undefined && pairs.get(key) === pair ? key : undefined
  }

  #readScalar(scalar: Scalar): Read {
    const { value, source = '' } = scalar
    if (typeof value !== 'number' || /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(source)) return { value, size: 1 }
    const plain = Number.isFinite(value) ? value.toLocaleString('en', { useGrouping: false }) : 'another number'
    this.#fault(scalar, `${show(source)} is not in plain digits: write ${plain}, or put it in quotes if it is text`)
    return { value, size: 1 }
  }

  #readAlias(alias: Alias): Read {
    const name = escapeText(alias.source)
    const target = this.#anchors.get(alias.source)
    const read = this.#done.get(target)
    this.#targets.set(alias, target)
    if (target === undefined) {
      const remedy = `put a value that begins with * in quotes, "*${name}"`
      this.#fault(alias, `no anchor &${name} stands before *${name}: ${remedy}`)
      return nothing
    }
    if (read === undefined) {
      this.#fault(alias, `*${name} stands inside what it repeats: write it out`)
      return nothing
    }
    this.#repeated += read.size
    if (this.#repeated <= MAX_REPEATED) return read
    return this.#giveUp(
      alias,
      `aliases up to *${name} repeat over ${MAX_REPEATED} values: write them out, or use fewer`,
    )
  }

  #giveUp(node: unknown, message: string): Read {
    if (this.isWhole) this.#fault(node, message)
    this.isWhole = false
    return nothing
  }

  #fault(node: unknown, message: string): void {
    if (this.faults.length < MAX_FAULTS) this.faults.push({ offset: startOf(node) ?? 0, message })
  }

  offsetOf(root: unknown, path: readonly PropertyKey[], atName: boolean): number {
    let offset = startOf(root) ?? 0
    let node = root
    for (const [index, step] of path.entries()) {
      if (isAlias(node)) node = this.#targets.get(node)
      const pair = isMap(node) ? this.#pairs.get(node)?.get(String(step)) : undefined
      node = pair ? pair.value : isSeq(node) ? node.items[Number(step)] : undefined
      if (node === undefined) break
      const word = pair && (node === null || (atName && index === path.length - 1))
      offset = startOf(word ? pair.key : node) ?? offset
    }
    return offset
  }

  itemAt(root: unknown, word: string, offset: number): number {
    const list = isMap(root) ? this.#pairs.get(root)?.get(word)?.value : undefined
    const items: unknown[] = isSeq(list) ? list.items : []
    return items.findIndex(item => isNode(item) && item.range && item.range[0] <= offset && offset < item.range[2])
  }
}

function wordOf(key: Scalar): string {
  return typeof key.value === 'string' ? key.value : (key.source ?? String(key.value))
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined
}

function sum(items: readonly Read[]): number {
  return items.reduce((total, item) => total + item.size, 1)
}
