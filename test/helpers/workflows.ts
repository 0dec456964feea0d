import { parse } from 'yaml'

interface Step {
  readonly uses?: string
  readonly run?: string
  readonly with?: Readonly<Record<string, unknown>>
}

interface Job {
  readonly needs?: string | readonly string[]
  readonly permissions?: Readonly<Record<string, string>>
  readonly 'timeout-minutes'?: number
  readonly steps: readonly Step[]
}

interface Workflow {
  readonly on: string | readonly string[] | Readonly<Record<string, unknown>>
  readonly permissions?: Readonly<Record<string, string>> | string
  readonly jobs: Readonly<Record<string, Job>>
}

const workflowKeys = ['name', 'on', 'permissions', 'concurrency', 'jobs']
const jobKeys = [...['name', 'needs', 'runs-on', 'timeout-minutes', 'environment', 'permissions', 'strategy', 'steps']]
const stepKeys = ['name', 'uses', 'run', 'with', 'env', 'if', 'id']
const triggers = ['push', 'pull_request', 'schedule']

/** Returns the faults of a workflow of GitHub: what could let somebody else's code or text do more than read. */
export function workflowFaults(text: string): string[] {
  const workflow = parse(text) as Workflow
  return [
    ...unknown('workflow', workflow, workflowKeys),
    ...Object.keys(Object(workflow.on)).flatMap(name => (triggers.includes(name) ? [] : [`trigger ${name}`])),
    ...topPermissions(workflow),
    ...unpinned(text),
    ...(/\bsecrets\b/.test(text) ? ['names a secret'] : []),
    ...Object.entries(workflow.jobs).flatMap(([name, job]) => jobFaults(name, job, workflow)),
  ]
}

/** Returns the actions of a workflow, each with its commit and version. */
export function actionsOf(text: string): { repository: string; commit: string; version: string }[] {
  return [...text.matchAll(/uses: ([\w-]+\/[\w-]+)[\w/-]*@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)$/gm)].map(
    ([, repository, commit, version]) => ({ repository: repository!, commit: commit!, version: version! }),
  )
}

/** Returns the permissions to write that jobs have, as `job: permission`. */
export function writesOf(text: string): string[] {
  const { jobs } = parse(text) as Workflow
  return Object.entries(jobs).flatMap(([name, { permissions = {} }]) =>
    Object.entries(permissions).flatMap(([permission, level]) => (level === 'read' ? [] : [`${name}: ${permission}`])),
  )
}

function unknown(place: string, value: object, known: readonly string[]): string[] {
  return Object.keys(value).flatMap(key => (known.includes(key) ? [] : [`${place}: unknown key ${key}`]))
}

function topPermissions({ permissions }: Workflow): string[] {
  if (typeof permissions !== 'object') return ['no permissions at the top']
  return Object.values(permissions).every(level => level === 'read') ? [] : ['permissions to write at the top']
}

function unpinned(text: string): string[] {
  const used = [...text.matchAll(/^.*\buses:(.*)$/gm)].map(([line]) => line.trim())
  return used.flatMap(line => (actionsOf(line).length === 1 ? [] : [`not pinned: ${line}`]))
}

function jobFaults(name: string, job: Job, { jobs }: Workflow): string[] {
  const mayWrite = Object.values(job.permissions ?? {}).some(level => level !== 'read')
  return [
    ...unknown(name, job, jobKeys),
    ...(job['timeout-minutes'] === undefined ? [`${name}: no timeout-minutes`] : []),
    ...[job.needs ?? []]
      .flat()
      .flatMap(needed => (needed in jobs ? [] : [`${name}: needs ${needed}, which is no job`])),
    ...job.steps.flatMap(step => stepFaults(name, step, mayWrite)),
  ]
}

function stepFaults(job: string, step: Step, mayWrite: boolean): string[] {
  const { uses, run = '', with: settings } = step
  return [
    ...unknown(`${job}, a step`, step, stepKeys),
    ...((uses === undefined) === (step.run === undefined) ? [`${job}: a step needs uses or run`] : []),
    // a value in braces becomes part of the program: a title or a branch of somebody else's could be one
    ...(run.includes('${{') ? [`${job}: braces in run: ${run.trim()}`] : []),
    ...(JSON.stringify(settings ?? {}).includes('github.event') ? [`${job}: text of others in with`] : []),
    ...(mayWrite && /\bnpm (?!publish)|\bnpx\b|\bnode /.test(run) ? [`${job}: may write and runs: ${run.trim()}`] : []),
    ...(uses?.startsWith('actions/checkout@') && settings?.['persist-credentials'] !== false
      ? [`${job}: checkout keeps its credentials`]
      : []),
  ]
}
