#!/usr/bin/env node
import { spawnSync } from 'node:child_process'
import { buildPackages, flag, readArguments, text, wholeNumber } from '../helpers/command.mjs'
import { filesFor, measureStreams } from './measure.mjs'

const usage = `usage: npm run long -- streams [--streams 10000] [--slices 10] [--calls 4000] [--check]

Opens idle streams through one gateway process, half of them server-sent events and half WebSockets, from several loopback
addresses. Prints how many were served, the memory of the gateway per stream, and the CPU that the gateway spends on an ordinary
call with and without the streams.

  --streams N   how many streams
  --slices N    how often ordinary calls are measured before the streams, meanwhile, and after them
  --calls N     ordinary calls per slice
  --check       exit with 1 also if ordinary calls cost more than 1.1 times as much beside the streams

Exit codes: 0 all streams were served, 1 some were not, 2 a mistake in the command.`

const mostTimes = 1.1
const median = values => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

const { check, ...options } = readArguments(
  usage,
  { streams: text('10000'), slices: text('10'), calls: text('4000'), check: flag },
  values => ({
    streams: wholeNumber('streams', values.streams, 35_000),
    slices: wholeNumber('slices', values.slices),
    calls: wholeNumber('calls', values.calls),
    check: values.check,
  }),
)

function assertFiles(streams) {
  const files = filesFor(streams)
  if (spawnSync('/bin/sh', ['-c', `ulimit -n ${files}`], { stdio: 'ignore' }).status === 0) return
  const limit = spawnSync('/bin/sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).stdout.trim()
  const allowed = streams - Math.ceil((files - Number(limit)) / 2)
  const remedy = `raise it, or measure what it allows by --streams ${allowed}`
  console.error(`a gateway with ${streams} streams needs ${files} open files; "ulimit -Hn" allows ${limit}: ${remedy}`)
  process.exit(2)
}

assertFiles(options.streams)
buildPackages()
const { served, open, ended, endMs, bytesPerStream, without, meanwhile } = await measureStreams(options)
const [cost, costBeside] = [median(without), median(meanwhile)]
const times = costBeside / cost
console.log(`streams served          ${served} of ${options.streams}`)
console.log(`open after the calls    ${open}`)
console.log(`ended                   ${ended}, in ${(endMs / 1000).toFixed(1)} s`)
console.log(`memory per stream       ${(bytesPerStream / 1024).toFixed(1)} KiB`)
console.log(
  `an ordinary call        ${cost.toFixed(1)} µs of CPU without streams, ${costBeside.toFixed(1)} µs beside them`,
)
console.log(`                        ${times.toFixed(2)} times as much`)
const isServed = served === options.streams && open === options.streams && ended === options.streams
process.exit(isServed && !(check && times > mostTimes) ? 0 : 1)
