// An old Node must be able to read this file and say so: no imports here, and nothing newer than Node 12 knows.

const NEEDED = '20.19.0'

/** Says in one sentence why this version of Node will not do, or answers undefined. */
export function unsupportedNode(version) {
  const actual = version.replace(/^v/, '')
  const numbers = actual.split('.').map(part => parseInt(part, 10))
  const needed = NEEDED.split('.').map(Number)
  const newEnough = numbers[0] > needed[0] || (numbers[0] === needed[0] && numbers[1] >= needed[1])
  if (newEnough) return undefined
  return (
    'Diana needs Node 20.19 or newer and this is Node ' +
    actual +
    ': install a current Node from https://nodejs.org, then run the same command again.'
  )
}

/** Loads and runs a command on a Node that is new enough; whatever goes wrong is told in one sentence, with exit code 1. */
export function begin(load) {
  const problem = unsupportedNode(process.version)
  const ended = problem ? Promise.reject(new Error(problem)) : load().then(command => command.default())
  ended.catch(error => {
    console.error(error.message)
    process.exitCode = 1
  })
}
