import { FreeSlots } from './free-slots.ts'
import { inheritMoves, type Layout, type LevelMove, moveStates } from './migrate-states.ts'

const EXTRAS_BITS = 10
const EXTRAS_SLOTS = 1 << EXTRAS_BITS
const FEW_SLOTS = 16
const NONE = 0
const NO_SLOT = -1

/**
 * The states of all keys of a rule, a slot of numbers for each, in chunks of typed arrays: a key costs no object, and growing
 * copies nothing.
 *
 * Numbers that most keys do not have (see `coreSlots` of a meter) are kept apart, and only for the slots that have any:
 *
 *   chunk |core|core|core|core|    place |0|0|7|0|    extras |...|7: extra numbers|...|
 *
 * A state of such meters is read and changed as a copy of the whole. One slot is open at a time; it is written back when
 * another one is opened, so a state is invalid after that of another slot was read.
 */
export class States {
  readonly layout: Layout
  readonly #chunkBits: number
  readonly #mask: number
  readonly #isSparse: boolean
  /** How far apart states are in the arrays that are handed out. */
  readonly #step: number
  readonly #chunks: (Float64Array | undefined)[] = []
  /** Where the numbers that are always stored are in a state, and those that are not. */
  readonly #coreAt: readonly number[]
  readonly #extraAt: readonly number[]
  /** Where the first extra number of each level is. */
  readonly #firstAt: readonly number[]
  readonly #whole: Float64Array
  #open = NO_SLOT
  #openChunk: Float64Array
  #openBase = 0
  #openPlace = NONE
  /** By chunk, the index of each slot's extra numbers; none for a chunk without any. */
  readonly #places: (Uint32Array | undefined)[] = []
  readonly #extras: Float64Array[] = []
  readonly #free = new FreeSlots()
  #used = NONE

  constructor(layout: Layout, chunkBits: number) {
    this.layout = layout
    this.#chunkBits = chunkBits
    this.#mask = (1 << chunkBits) - 1
    const { coreAt, extraAt, firstAt } = splitLayout(layout)
    this.#coreAt = coreAt
    this.#extraAt = extraAt
    this.#firstAt = firstAt
    this.#isSparse = extraAt.length > 0
    this.#step = this.#isSparse ? 0 : layout.stride
    this.#whole = new Float64Array(layout.stride)
    this.#openChunk = new Float64Array(layout.stride)
  }

  /** The arrays with all states, for speed; undefined if states are read as copies. */
  get chunks(): readonly (Float64Array | undefined)[] | undefined {
    return this.#isSparse ? undefined : this.#chunks
  }

  /** The array with the state of a slot from `base` on; the chunk of the slot must exist. */
  state(slot: number): Float64Array {
    if (!this.#isSparse) return this.#chunks[slot >> this.#chunkBits]!
    if (slot !== this.#open) this.#switchTo(slot)
    return this.#whole
  }

  base(slot: number): number {
    return (slot & this.#mask) * this.#step
  }

  hasChunk(slot: number): boolean {
    return this.#chunks[slot >> this.#chunkBits] !== undefined
  }

  /** Makes room for the first `slots` slots of the chunk of a slot, or for all of them; those that were there stay. */
  addChunk(slot: number, slots: number = 1 << this.#chunkBits): void {
    const place = slot >> this.#chunkBits
    const chunk = new Float64Array(slots * this.#coreAt.length)
    const before = this.#chunks[place]
    if (before) chunk.set(before)
    if (before === this.#openChunk) this.#openChunk = chunk
    this.#chunks[place] = chunk
  }

  clear(slot: number): void {
    const base = this.base(slot)
    this.state(slot).fill(0, base, base + this.layout.stride)
  }

  copy(from: number, to: number): void {
    const { stride } = this.layout
    const base = this.base(from)
    const copied = this.state(from).slice(base, base + stride)
    this.state(to).set(copied, this.base(to))
  }

  /** What the meters of another layout make of all states; these here stay as they are. */
  inherit(after: Layout, now: number): States {
    return this.move(after, inheritMoves(this.layout, after), now)
  }

  /** The states in another layout, with each level converted as `moves` defines; the states here stay unchanged. */
  move(after: Layout, moves: readonly LevelMove[], now: number): States {
    const heirs = new States(after, this.#chunkBits)
    this.#chunks.forEach((chunk, place) => {
      if (!chunk) return
      const first = place << this.#chunkBits
      const slots = chunk.length / this.#coreAt.length
      const states = moveStates(this.#wholeChunk(first, slots), slots, this.layout.stride, after.stride, moves, now)
      heirs.#chunks[place] = heirs.#isSparse ? new Float64Array(slots * heirs.#coreAt.length) : states
      for (let slot = 0; heirs.#isSparse && slot < slots; slot++) {
        heirs.state(first + slot).set(states.subarray(slot * after.stride, (slot + 1) * after.stride))
      }
    })
    return heirs
  }

  #wholeChunk(first: number, slots: number): Float64Array {
    if (!this.#isSparse) return this.state(first)
    const states = new Float64Array(slots * this.layout.stride)
    for (let slot = 0; slot < slots; slot++) states.set(this.state(first + slot), slot * this.layout.stride)
    return states
  }

  /** Writes the open slot back, and opens another. */
  #switchTo(slot: number): void {
    const whole = this.#whole
    const coreAt = this.#coreAt
    const count = coreAt.length
    let chunk = this.#openChunk
    let base = this.#openBase
    for (let i = 0; i < count; i++) chunk[base + i] = whole[coreAt[i]!]!
    const hasExtras = this.#hasExtras()
    if (hasExtras || this.#openPlace !== NONE) this.#writeExtras(hasExtras)
    const places = this.#places[slot >> this.#chunkBits]
    chunk = this.#chunks[slot >> this.#chunkBits]!
    base = (slot & this.#mask) * count
    for (let i = 0; i < count; i++) whole[coreAt[i]!] = chunk[base + i]!
    this.#open = slot
    this.#openChunk = chunk
    this.#openBase = base
    this.#openPlace = places === undefined ? NONE : places[slot & this.#mask]!
    if (hasExtras || this.#openPlace !== NONE) this.#readExtras()
  }

  #hasExtras(): boolean {
    const whole = this.#whole
    const firstAt = this.#firstAt
    for (let i = 0; i < firstAt.length; i++) if (whole[firstAt[i]!] !== 0) return true
    return false
  }

  #readExtras(): void {
    const [whole, extraAt, place] = [this.#whole, this.#extraAt, this.#openPlace]
    const extras = this.#extras[place >> EXTRAS_BITS]
    const base = (place & (EXTRAS_SLOTS - 1)) * extraAt.length
    for (let i = 0; i < extraAt.length; i++) whole[extraAt[i]!] = place === NONE ? 0 : extras![base + i]!
  }

  #writeExtras(hasExtras: boolean): void {
    if (!hasExtras) {
      this.#free.push(this.#openPlace)
      this.#setPlace(NONE)
      return
    }
    if (this.#openPlace === NONE) this.#setPlace(this.#free.pop() ?? ++this.#used)
    const [whole, extraAt, place] = [this.#whole, this.#extraAt, this.#openPlace]
    const extras = this.#extrasFor(place)
    const base = (place & (EXTRAS_SLOTS - 1)) * extraAt.length
    for (let i = 0; i < extraAt.length; i++) extras[base + i] = whole[extraAt[i]!]!
  }

  /** The array with the extra numbers of a place. The first few places need no whole array. */
  #extrasFor(place: number): Float64Array {
    const width = this.#extraAt.length
    const before = this.#extras[place >> EXTRAS_BITS]
    const at = place & (EXTRAS_SLOTS - 1)
    if (before !== undefined && before.length > at * width) return before
    const extras = new Float64Array((place < FEW_SLOTS ? FEW_SLOTS : EXTRAS_SLOTS) * width)
    if (before !== undefined) extras.set(before)
    this.#extras[place >> EXTRAS_BITS] = extras
    return extras
  }

  #setPlace(place: number): void {
    const chunk = this.#open >> this.#chunkBits
    this.#places[chunk] ??= new Uint32Array(this.#mask + 1)
    this.#places[chunk][this.#open & this.#mask] = place
    this.#openPlace = place
  }
}

/** Which numbers of a state are always stored, which are not, and the first of those of each level. */
function splitLayout({ meters, offsets }: Layout): Record<'coreAt' | 'extraAt' | 'firstAt', number[]> {
  const [coreAt, extraAt, firstAt]: number[][] = [[], [], []]
  meters.forEach(({ slots, memory }, level) => {
    const coreSlots = memory?.coreSlots ?? slots
    const offset = offsets[level]!
    for (let slot = 0; slot < slots; slot++) (slot < coreSlots ? coreAt : extraAt)!.push(offset + slot)
    if (coreSlots < slots) firstAt!.push(offset + coreSlots)
  })
  return { coreAt: coreAt!, extraAt: extraAt!, firstAt: firstAt! }
}
