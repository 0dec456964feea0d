import { resetStreams } from '../http2/resets.mjs'
import { fatal, frameFlood, frameWalk, mutatedWalk, orderlyCalls } from '../http2/scripts.mjs'
import { createAnswer } from './answers.mjs'
import { mutate } from './mutate.mjs'
import { createRequest, createUpgrade } from './requests.mjs'
import { respCommands, respPipeline } from './resp.mjs'
import { address, keptAlive, leaver, orderly, patient, pipeline, slow, upgrade } from './scripts.mjs'
import { spoeFrames } from './spoe.mjs'
import { versionCalls } from './versions.mjs'

const single = random => ({ from: address(random), times: 1 })

const mixed = [
  [4, patient],
  [2, orderly],
  [3, keptAlive],
  [3, leaver],
  [2, slow],
  [2, upgrade],
  [2, (random, tools) => pipeline(random, { ...tools, length: random.int(2, 12), patient: false })],
  [1, (random, tools) => pipeline(random, { ...tools, length: random.int(2, 3), patient: true })],
]

const http2 = [
  [8, frameWalk],
  [4, mutatedWalk],
  [1, frameFlood],
  [1, fatal],
  [2, orderlyCalls],
]

/** What a round is about; a theme repeats what it does often enough for small leaks to show. */
export const themes = [
  {
    name: 'mixed',
    weight: 4,
    answers: random => random.list(12, () => createAnswer(random)),
    connections: (random, tools) =>
      random.list(random.int(12, 40), () => ({ ...single(random), ...random.weighted(mixed)(random, tools) })),
  },
  {
    name: 'answers',
    weight: 3,
    answers: random =>
      random.list(20, () =>
        createAnswer(random, random.pick(['status', 'header', 'body', 'conduct', 'conduct', 'garbage'])),
      ),
    connections: (random, tools) =>
      random.list(random.int(20, 40), () => ({ ...single(random), ...patient(random, tools) })),
  },
  {
    name: 'pipelines',
    weight: 2,
    answers: random => random.list(4, () => createAnswer(random, random.pick(['good', 'large', 'conduct']))),
    connections: (random, tools) =>
      random.list(random.int(1, 8), () => ({
        ...single(random),
        ...pipeline(random, { ...tools, length: random.pick([2, 5, 20, 100, 300]), patient: false }),
      })),
  },
  {
    name: 'upgrades',
    weight: 2,
    answers: random =>
      random.list(8, () => createAnswer(random, random.pick(['good', 'upgrade', 'upgrade', 'conduct', 'status']))),
    connections: (random, tools) =>
      random.list(random.int(5, 20), () => ({ ...single(random), ...upgrade(random, tools) })),
  },
  {
    name: 'orderly',
    weight: 2,
    answers: () => [],
    connections: random => random.list(random.int(5, 25), () => ({ ...single(random), ...orderly(random) })),
  },
  {
    name: 'crowd',
    weight: 1,
    answers: random => [createAnswer(random, 'large')],
    connections: (random, tools) => [
      { from: 'many', times: random.int(280, 320), ...slow(random, { ...tools, holdMs: 8000, prefix: '' }) },
    ],
  },
  {
    name: 'storm',
    weight: 2,
    answers: random => random.list(2, () => createAnswer(random)),
    connections: (random, tools) => {
      const request = random.chance(0.3)
        ? createUpgrade(random, tools)
        : createRequest(random, { ...tools, body: random.chance(0.1) })
      const isMutated = random.chance(0.2)
      const text = isMutated ? mutate(random, request.text) : request.text
      const [times, each] = random.pick([
        [1, 300],
        [4, 80],
        [300, 1],
      ])
      const steps = [
        { write: text, times: text.length > 20_000 ? 10 : each },
        { pause: 300 },
        random.pick(['reset', 'close', 'end']),
      ]
      return [
        { from: times > 1 ? 'many' : address(random), times, requests: each, mutated: isMutated ? each : 0, steps },
      ]
    },
  },
  {
    name: 'leavers',
    weight: 2,
    answers: random => random.list(6, () => createAnswer(random)),
    connections: (random, tools) =>
      random.list(random.int(40, 100), () => ({ ...single(random), ...leaver(random, tools) })),
  },
  {
    name: 'http2',
    weight: 5,
    protocol: 'h2',
    answers: random => random.list(12, () => createAnswer(random, random.chance(0.5) ? 'good' : undefined)),
    connections: (random, tools) =>
      random.list(random.int(15, 50), () => ({ ...single(random), ...random.weighted(http2)(random, tools) })),
  },
  {
    name: 'versions',
    weight: 2,
    answers: random => random.list(6, () => createAnswer(random)),
    connections: (random, tools) =>
      random.list(random.int(20, 60), () => ({ ...single(random), ...versionCalls(random, tools) })),
  },
  {
    name: 'resets',
    weight: 2,
    protocol: 'h2',
    answers: random => random.list(2, () => createAnswer(random, 'good')),
    connections: random => random.list(random.int(3, 15), () => ({ ...single(random), ...resetStreams(random) })),
  },
  {
    name: 'spoe',
    // only for the port that speaks it
    weight: 0,
    answers: () => [],
    connections: random => random.list(random.int(10, 40), () => ({ ...single(random), ...spoeFrames(random) })),
  },
  {
    name: 'resp',
    // only for the port that speaks it
    weight: 0,
    answers: () => [],
    connections: random =>
      random.list(random.int(10, 40), () => ({
        ...single(random),
        ...(random.chance(0.2) ? respPipeline(random) : respCommands(random)),
      })),
  },
]
