#!/usr/bin/env node
// Checks the model of the protocol of a fleet by Spin: all of its scenes hold, and each fault of before is found again.
import { installPrograms, programs } from '../scripts/programs.mjs'
import { flag, mistake, readArguments } from '../test/helpers/command.mjs'
import { checkMutant, checkScene } from './check.mjs'
import { mutants, scenes } from './scenes.mjs'

const usage = `usage: npm run long -- prove [--short] [--only TEXT]...

Looks at every state of the model in model/fleet.pml, for 2 and 3 processes and each kind of fault: no more is admitted than the limit and
its stated allowances, all processes return, and nothing is counted twice. Then puts faults of before back in, which must be found.

  --short      only what npm test runs
  --only TEXT  only scenes and faults whose names contain this, in any case; may be given several times

Exit codes: 0 all scenes hold and all faults are found, 1 not, 2 a mistake in the command.`

const AT_ONCE = 2
const shapes = { short: flag, only: { type: 'string', multiple: true, default: [] } }
const isShown = ({ name }, only) =>
  only.length === 0 || only.some(text => name.toLowerCase().includes(text.toLowerCase()))
const { short, only } = readArguments(usage, shapes, values => {
  const unknown = values.only.find(text => ![...scenes, ...mutants].some(one => isShown(one, [text])))
  if (unknown !== undefined) mistake(`there is no scene or fault of "${unknown}"`)
  return values
})

await installPrograms({
  path: process.env.PATH,
  isRoot: process.getuid?.() === 0,
  wanted: programs.filter(({ name }) => name === 'spin' || name === 'gcc'),
  wantedBy: { name: 'the model', command: 'npm run long -- prove' },
})

const chosen = some => some.filter(one => isShown(one, only) && (!short || one.isShort))
const jobs = [
  ...chosen(scenes).flatMap(scene => (short ? [2] : scene.sizes).map(size => sceneJob(scene, size))),
  ...chosen(mutants).map(mutantJob),
]
let [missed, done, allStates] = [0, 0, 0]
const since = performance.now()
await Promise.all(Array.from({ length: AT_ONCE }, work))
const seconds = Math.round((performance.now() - since) / 1000)
console.log(`${jobs.length} checks, ${allStates.toLocaleString('en')} states, ${seconds} s, ${missed} missed`)
process.exitCode = missed > 0 ? 1 : 0

async function work() {
  for (let job = jobs[done++]; job; job = jobs[done++]) {
    const began = performance.now()
    const { text, isMissed, states } = await job().catch(error => ({ text: String(error), isMissed: true, states: 0 }))
    if (isMissed) missed++
    allStates += states
    const took = ((performance.now() - began) / 1000).toFixed(1)
    console.log(`${isMissed ? 'MISSED ' : 'ok     '} ${text}  ${took} s`)
  }
}

function sceneJob(scene, size) {
  return async () => {
    const { states, depth, failure } = await checkScene(scene, size, { isQuick: short })
    const found = failure ? `: ${failure.claim}, after ${failure.steps} steps` : ''
    const text = `${`${scene.name}, ${size} processes`.padEnd(52)} ${String(states).padStart(9)} states, depth ${depth}${found}`
    return { text, isMissed: failure !== undefined, states }
  }
}

function mutantJob(mutant) {
  return async () => {
    const { states, failure } = await checkMutant(mutant, { isQuick: true })
    const found = failure ? `found after ${failure.steps} steps: ${failure.claim}` : 'not found'
    return { text: `${mutant.name.padEnd(52)} ${found}`, isMissed: failure === undefined, states }
  }
}
