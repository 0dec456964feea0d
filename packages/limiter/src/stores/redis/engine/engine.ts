import type { LuaAlgorithm } from '../../../algorithms/algorithm.ts'
import * as generated from '../../../algorithms/lua/generated.ts'
import { DianaError } from '../../../errors.ts'
import {
  CLOCK_MARGIN,
  LEASE_US,
  LEAST_SHARE,
  LONGEST_TURN_US,
  NETWORK_LEASES,
  RECLAIM_US,
  SHARE_OF_ROOM,
  TURN_US,
} from '../../leases/lease-terms.ts'
import { RETURNED_US } from '../../memory/delay-beside.ts'
import { KEPT_US, MOST_VERSIONS } from '../../memory/rule-versions.ts'
import { type Script, scriptOf } from '../script/evaluate-script.ts'
import { decide, entries, leases, ledger, limits, run, runState, settlements } from './generated.ts'

/** The Lua of all algorithms that rules can name: processes with other rules may have counted by any of them. */
const luaAlgorithms: readonly LuaAlgorithm[] = Object.values(generated)

/** True for the Lua of an algorithm of Diana, which is in every library; throws if a text is missing that is not. */
export function isOwnLua({ name, lua }: LuaAlgorithm): boolean {
  if (lua !== undefined) return false
  if (luaAlgorithms.some(own => own.name === name)) return true
  throw new DianaError('BAD_RULES', `the Lua ${name} has no text: give a meter lua: { name, lua }`)
}

/** A reply packs `remaining` and `reset` into one number if they are below these bounds. */
const REMAINING = 2 ** 26
export const RESETS: number = 2 ** 27

/**
 * The program that counts in Redis, as a function library, and as a script for a Redis without functions. Both are the same
 * source: the Lua of every algorithm, and the engine that reads, judges and writes. A library is loaded once and its functions
 * are made once; a script makes them again for each batch.
 */
export interface Engine {
  /** The name of the library and of its function: a library of other source has another name. */
  readonly name: string
  readonly library: string
  readonly script: Script
}

/** The engine with the algorithms that Diana brings, and those of the application. */
export function engineWith(own: readonly LuaAlgorithm[]): Engine {
  const source = sourceOf(own)
  const name = `diana_${scriptOf(source).sha.slice(0, 16)}`
  return {
    name,
    library: `#!lua name=${name}\n${source}\nredis.register_function('${name}', run)`,
    script: scriptOf(`${source}\nreturn run(KEYS, ARGV)`),
  }
}

/** The source; in one order, so that processes with the same algorithms have the same library. */
function sourceOf(own: readonly LuaAlgorithm[]): string {
  const all = new Map([...luaAlgorithms, ...own].map(algorithm => [algorithm.name, algorithm]))
  const makers = [...all.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).map(makerOf)
  return [HEAD, ...makers, runState, limits, entries, ledger, leases, settlements, decide, run].join('\n')
}

const HEAD = `
local KEPT_US, MOST_VERSIONS = ${KEPT_US}, ${MOST_VERSIONS}
local LEASE_US, RECLAIM_US, CLOCK_MARGIN = ${LEASE_US}, ${RECLAIM_US}, ${CLOCK_MARGIN}
local SHARE, SHARE_OF_ROOM = ${NETWORK_LEASES.share}, ${SHARE_OF_ROOM}
local LEAST_SHARE, TURN_US, LONGEST_TURN_US, RETURNED_US = ${LEAST_SHARE}, ${TURN_US}, ${LONGEST_TURN_US}, ${RETURNED_US}
local REMAINING, RESETS = ${REMAINING}, ${RESETS}
-- Redis 7.0 has these names only while a function runs, not while its library loads, so the first run binds them.
local floor, ceil, max, min, huge
local makers = {}`

/** Algorithms stand before the engine, so that they see no names of it. */
function makerOf({ name, lua }: LuaAlgorithm): string {
  return `makers[${JSON.stringify(name)}] = function()\n${lua}\nend`
}
