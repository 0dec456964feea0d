import { Refusal } from '../../http/refusal.ts'
import type { RoleSettings } from '../../settings/identity-settings.ts'
import type { Role, User } from './identity.ts'

const mostShown = 20

/** The role of a user; throws a refusal that says what was seen and what is allowed if there is none. */
export function createRoles({ operator, viewer }: RoleSettings): (user: User) => Role {
  const operators = new Set(operator)
  const viewers = new Set(viewer)
  return user => {
    const words = ['*', `user:${user.name}`, ...user.groups.map(group => `group:${group}`)]
    if (words.some(word => operators.has(word))) return 'operator'
    if (words.some(word => viewers.has(word))) return 'viewer'
    const groups = user.groups.length === 0 ? 'in no group' : `in the groups ${shown(user.groups)}`
    throw new Refusal(
      403,
      `You are signed in as ${user.name}, ${groups}, which has no role here: gateway.admin.identity.roles lists ${shown([...operator, ...viewer])}.`,
    )
  }
}

function shown(words: readonly string[]): string {
  const more = words.length - mostShown
  return `${words.slice(0, mostShown).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
