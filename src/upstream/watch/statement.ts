/** A longer statement is compared as it is: a search through it would cost more than the finding is worth. */
const MAX_LENGTH = 4_096;
const VALUES = /(?:'[^']*')+|\b\d+(?:\.\d+)?\b/g;

/** A statement without the values that some clients write into it (MikroORM, Sequelize): N+1 is one statement with other values. */
export const maskValues = (sql: string): string => (sql.length > MAX_LENGTH ? sql : sql.replaceAll(VALUES, '?'));
